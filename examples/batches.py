"""Batches: one handler scores ten listings, and a listing that fails is retried alone."""

from __future__ import annotations

import asyncio
from pathlib import Path

import penstock as ps

app = ps.App("scores", migrations=Path(__file__).parent / "batches_migrations")


class Listed(ps.Event, type="listing.listed"):
    number: int


listed = app.queue("listed", Listed, batch=10, batch_wait=0.2, retries=1)
tries: dict[int, int] = {}


@listed.batch_handler
async def score(batch: ps.Batch[Listed]) -> None:
    prices = {message.id: 100 + message.body.number for message in batch}  # one call of a service for all ten
    for message in batch:
        async with message:  # a unit for this message; an error here affects only this message
            number = message.body.number
            tries[number] = tries.get(number, 0) + 1
            if number == 7 and message.attempt == 1:
                raise ValueError("number 7 failed")
            app.db.write(
                "insert into scores (number, score) values (:number, :score)", number=number, score=prices[message.id]
            )


async def main() -> None:
    async with app.unit():
        listed.send_batch([Listed(number=number) for number in range(10)])
    await app.run(until_idle=True)
    async with app:
        scored = await app.db.value("select count(*) from scores")
        print(f"{scored} scored, {len(tries) - scored} waits for its retry, attempts: {tries}")


if __name__ == "__main__":
    asyncio.run(main())
