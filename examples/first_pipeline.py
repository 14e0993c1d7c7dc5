"""A pipeline in thirty lines: find apps, enrich each one, store the result. A second run of the program has no effect."""

from __future__ import annotations

import asyncio
import random

import penstock as ps

app = ps.App("first")  # the database is first.db in the current folder
db = app.db  # your own tables in the same file, created by migrations/*.sql next to this program


class AppFound(ps.Event, type="app.found"):
    track_id: int
    name: str


found = app.queue("found", AppFound, retries=3)  # dead letters: found-dlq


@found.handler
async def enrich(event: AppFound) -> None:
    rating = await ask_the_store(event.track_id)
    db.write(  # an effect of the handler's unit, which commits with the acknowledgement
        "insert into apps (track_id, name, rating) values (:track_id, :name, :rating) on conflict do nothing",
        event,
        rating=rating,
    )


async def ask_the_store(track_id: int) -> float:
    await asyncio.sleep(0.01)
    return round(random.Random(track_id).uniform(1, 5), 1)


async def main() -> None:
    async with app.unit(key="discovery"):  # a unit outside a handler commits at the end of the block, once for this key
        for track_id in range(1, 101):
            found.send(AppFound(track_id=track_id, name=f"App {track_id}"))
    await app.run(until_idle=True)
    async with app:
        best = await db.rows("select name, rating from apps order by rating desc, track_id limit 3")
        print(f"{await db.value('select count(*) from apps')} apps, the best: {', '.join(row.name for row in best)}")


if __name__ == "__main__":
    asyncio.run(main())
