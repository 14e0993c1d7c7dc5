"""Fan-out: one wish becomes forty messages that a service is asked for at its pace, and each answer has two readers."""

from __future__ import annotations

import asyncio

import penstock as ps

app = ps.App("research")


class Research(ps.Command, type="research.requested"):
    keyword: str


class Found(ps.Event, type="research.completed"):
    keyword: str
    results: int


wishes = app.queue("research-commands", Research, rate=50)  # starts at most fifty a second, in all workers
events = app.queue("brand-events", Found)
total = 0
seen: set[str] = set()
pauses: list[str] = []
everything_seen = asyncio.Event()


@wishes.handler
async def research(wish: Research) -> None:
    events.send(Found(keyword=wish.keyword, results=len(wish.keyword)))  # the same correlation id, saved with the ack


@events.handler
async def count(found: Found) -> None:
    global total
    total += found.results


@events.handler  # a second reader: its own copy, its own retries
async def remember(found: Found) -> None:
    if found.keyword == "keyword 7" and not pauses:
        pauses.append(found.keyword)
        raise ps.Throttled("slow down", retry_after=0.1)  # waits, and loses no attempt; `count` is not run again
    seen.add(found.keyword)
    if len(seen) == 40:
        everything_seen.set()


async def main() -> None:
    async with app.unit(key="this week's keywords"):  # once, however often this program is started
        wishes.send_all(Research(keyword=f"keyword {number}") for number in range(40))
    running = asyncio.ensure_future(app.run())
    await everything_seen.wait()
    app.stop()
    await running
    print(f"{len(seen)} keywords, {total} results, each counted once")


if __name__ == "__main__":
    asyncio.run(main())
