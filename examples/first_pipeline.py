"""A pipeline in thirty lines: find apps, enrich each one, and keep what was learnt. Run it twice: nothing is done twice."""

from __future__ import annotations

import asyncio
import random

import penstock as ps

app = ps.App("first")  # everything is in first.db, in the current folder
db = app.db  # the same file, for your own tables: migrations/*.sql beside this file


class AppFound(ps.Event, type="app.found"):
    track_id: int
    name: str


found = app.queue("found", AppFound, parallel=8, retries=3)  # dead letters: found-dlq


@found.handler
async def enrich(event: AppFound) -> None:
    rating = await ask_the_store(event.track_id)
    db.write(  # joins this handler's unit: saved with the acknowledgement in one commit, or not at all
        "insert into apps (track_id, name, rating) values (:track_id, :name, :rating) on conflict do nothing",
        event,
        rating=rating,
    )


async def ask_the_store(track_id: int) -> float:
    await asyncio.sleep(0.01)
    return round(random.Random(track_id).uniform(1, 5), 1)


async def main() -> None:
    async with app.unit(key="discovery"):  # outside a handler: a unit that commits at its end, once for this key
        for track_id in range(1, 101):
            found.send(AppFound(track_id=track_id, name=f"App {track_id}"))
    await app.run(until_idle=True)
    async with app:
        best = await db.rows("select name, rating from apps order by rating desc, track_id limit 3")
        print(f"{await db.value('select count(*) from apps')} apps, the best: {', '.join(row.name for row in best)}")


if __name__ == "__main__":
    asyncio.run(main())
