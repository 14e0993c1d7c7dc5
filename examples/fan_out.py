"""Fan-out: one request becomes forty commands with a rate limit, and each resulting event has two handlers."""

from __future__ import annotations

import asyncio

import penstock as ps

app = ps.App("research")


class Research(ps.Command, type="research.requested"):
    keyword: str


class Found(ps.Event, type="research.completed"):
    keyword: str
    results: int


commands = app.queue("research-commands", Research, rate=50)  # starts at most fifty per second, in all workers
events = app.queue("brand-events", Found)
total = 0
seen: set[str] = set()
pauses: list[str] = []
everything_seen = asyncio.Event()


@commands.handler
async def research(command: Research) -> None:
    # Commits with the acknowledgement, and inherits the correlation id.
    events.send(Found(keyword=command.keyword, results=len(command.keyword)))


@events.handler
async def count(found: Found) -> None:
    global total
    total += found.results


@events.handler  # a second handler has its own copy of the message and its own retries
async def remember(found: Found) -> None:
    if found.keyword == "keyword 7" and not pauses:
        pauses.append(found.keyword)
        raise ps.Throttled("slow down", retry_after=0.1)  # retried without a charge; `count` does not run again
    seen.add(found.keyword)
    if len(seen) == 40:
        everything_seen.set()


async def main() -> None:
    async with app.unit(key="this week's keywords"):  # commits once, for any number of starts of this program
        commands.send_all(Research(keyword=f"keyword {number}") for number in range(40))
    running = asyncio.ensure_future(app.run())
    await everything_seen.wait()
    app.stop()
    await running
    print(f"{len(seen)} keywords, {total} results, each counted once")


if __name__ == "__main__":
    asyncio.run(main())
