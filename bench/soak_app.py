"""The app of the soak: every concept at a constant rate, with tables that stop growing."""

from __future__ import annotations

import os

import penstock as ps

RATE = int(os.environ.get("SOAK_RATE", "20"))  # messages that a minute's tick sends, each second of it
LISTINGS = 5_000  # rows that are written again and again
FAILS_EVERY, SLEEPS_EVERY = 50, 100  # messages: one that fails once, one that starts a run

app = ps.App("soak")
db = app.db


class Found(ps.Event, type="listing.found"):
    number: int


class Priced(ps.Event, type="listing.priced"):
    number: int


class Probe(ps.Event, type="soak.probe"):
    """What bench/soak.py sends to time an awaited send."""


probes = app.queue("probes", Probe)
found = app.queue("found", Found, retries=ps.Retry(3, first=1.0, longest=10.0))
priced = app.queue("priced", Priced)


class Shelf(ps.Object):
    """Counts the prices of a tenth of the listings, and writes the count down a minute after a change."""

    prices: int = 0

    async def note(self) -> None:
        self.prices += 1
        if await self.get_alarm() is None:
            self.set_alarm(after=60)

    async def alarm(self) -> None:
        db.upsert("shelves", {"name": self.name, "prices": self.prices}, key="name")


shelves = app.object(Shelf, tag="v1")


async def always() -> bool:
    return True


@app.cron("* * * * *", reason="a constant rate, so that any drift is the engine's", when=always)
async def discover(tick: ps.Tick) -> None:
    start = int(tick.scheduled_at.timestamp()) * RATE
    found.send_all((Found(number=start + number) for number in range(60 * RATE)), rate=RATE)


@found.handler
async def look(event: Found, message: ps.Message[Found]) -> None:
    if event.number % FAILS_EVERY == 0 and message.attempts == 1:
        raise ConnectionError("the shop hung up")
    db.upsert("listings", {"id": event.number % LISTINGS, "seen": event.number}, key="id")
    priced.send(Priced(number=event.number))
    if event.number % SLEEPS_EVERY == 0:
        review.start(event.number)


@priced.handler
async def price(event: Priced) -> None:
    await shelves[str(event.number % 10)].note()


@probes.handler
async def ignore(_: Probe) -> None: ...


@app.workflow
async def review(run: ps.Run, number: int) -> int:
    await run.sleep(60)
    return await run.step("read", seen, number)


async def seen(number: int) -> int:
    return int(await db.value("select seen from listings where id = :id", id=number % LISTINGS))
