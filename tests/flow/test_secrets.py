"""A secret in an error is nowhere afterwards: not in a log, not in a row, not in a dead letter."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import penstock as ps
from penstock import logs
from penstock.config import LogConfig
from penstock.testing import TestApp, virtual
from tests.flow.shop import Listing

CANARY = "hunter2hunter2hunter2"
WAYS = (
    f"GET https://ada:{CANARY}@shop.example/orders failed",
    f"https://shop.example/?page=2&api_key={CANARY}",
    f"Authorization: Bearer {CANARY}",
    f"Set-Cookie: session={CANARY}; Path=/",
    f"postgresql://penstock:{CANARY}@db.example/shop",
    f'{{"password": "{CANARY}"}}',
    f"SHOP_TOKEN={CANARY} was not taken",
)


class Shelf(ps.Object):
    async def fill(self, way: str) -> None:
        self.set_alarm(after=1)
        raise OSError(way)

    async def alarm(self) -> None:
        raise OSError(WAYS[0])


def failing_app() -> ps.App:
    """Everything that can fail does, each time with a secret in what it says."""
    app = ps.App("shop")
    listings, singles = (
        app.queue("listings", Listing, batch=3, batch_wait=1, retries=1),
        app.queue("singles", Listing, retries=1),
    )
    shelves = app.object(Shelf)

    @singles.handler(Listing)
    async def handle(listing: Listing) -> None:
        raise OSError(listing.name and WAYS[int(listing.name)])

    @listings.batch_handler
    async def take(batch: ps.Batch[Listing]) -> None:
        raise ps.Permanent(WAYS[1])

    @app.cron("* * * * *", reason="a test that looks at failures", when=always)
    async def crawl() -> None:
        await shelves["main"].fill(WAYS[2])

    @app.workflow
    async def research(run: ps.Run, way: int) -> None:
        await run.step("gather", fails, way)

    @app.controller("enrichment")
    class Enrichment(ps.Controller[int]):
        async def pick(self, limit: int) -> list[int]:
            return [*range(len(WAYS))][:limit]

        async def work(self, item: int) -> None:
            raise OSError(WAYS[item])

    return app


async def always() -> bool:
    return True


async def fails(way: int) -> None:
    raise OSError(WAYS[way])


@pytest.mark.fault("F48")
@pytest.mark.spec("A12-06")
@pytest.mark.only_on("sqlite")
@virtual
async def test_no_failure_leaves_a_secret_in_a_log_or_on_the_disk() -> None:
    app, log = failing_app(), io.StringIO()
    detach = logs.attach(app.events, LogConfig(level="debug", format="json"), log)
    async with TestApp(app) as shop:
        async with shop.unit():
            for way in range(len(WAYS)):
                app.queues["singles"].send(Listing(name=str(way)))
                app.queues["listings"].send(Listing(name="a"))
            app.workflows["research"].start(way=4)
        await shop.advance(minutes=10)
        letters = await shop.dead(app.queues["singles"])
        kept = b"".join(path.read_bytes() for path in Path(app.database).parent.glob("*") if path.is_file())
    detach()
    said = log.getvalue().splitlines()

    assert len(letters) == len(WAYS)
    assert b"OSError" in kept, "the errors themselves are there"
    assert {"tick.failed", "message.failed", "pace.changed"} <= {line["event"] for line in map(json.loads, said)}
    assert CANARY.encode() not in kept
    assert not [line for line in said if CANARY in line]
