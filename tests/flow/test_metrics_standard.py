"""Every app tells the same things about itself in data points, once a minute at most, and nothing while it is idle."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.config import Config
from penstock.metrics import standard
from penstock.metrics.sampling import Fact, look
from penstock.metrics.standard import Dataset
from penstock.model.errors import StoreUnavailable
from penstock.storage.sqlite.store import SqliteStore
from penstock.testing import TestApp, virtual
from tests.flow.research import Lab
from tests.flow.shelf import Shelf
from tests.flow.shop import EFFECT, Listing, shop_app

START = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)


async def told(points: Dataset, kind: str, columns: str = "double1, double2, double3") -> list[tuple[Any, ...]]:
    """The points of one kind in the order of their times, with what they are about before their numbers."""
    found = await points.query(
        f"select phase, {columns} from points where index1 = 'penstock' and trigger = :kind order by at, phase",
        kind=kind,
    )
    return [tuple(row) for row in found]


@pytest.mark.spec("A10-06")
@virtual
async def test_queues_tell_how_much_waits_how_old_it_is_and_what_failed() -> None:
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        if listing.name == "bad" or message.attempts == 1:
            raise ValueError("no")
        await asyncio.sleep(3_600)

    app, listings = shop_app(handle, retries=1, parallel=1, timeout=7_200)
    points = app.metrics("platform_metrics")
    async with TestApp(app, start=START) as shop:
        for name in ("bad", "good", "good", "good"):
            await shop.send(listings, Listing(name=name))
        await shop.advance(seconds=61)

        [(queue, depth, age, dead)] = await told(points, "queue")
        assert (queue, depth, dead) == ("listings", 3.0, 1.0)
        assert 20 < age < 60
        assert await told(points, "failure", "double1, double2") == [("listings", 4.0, 1.0)]


@pytest.mark.spec("A10-06", "A4-09")
@virtual
async def test_cron_tasks_tell_of_runs_that_did_something_found_nothing_failed_or_were_skipped() -> None:
    app = ps.App("shop")
    points = app.metrics("platform_metrics", service="pipeline")

    async def something_to_do() -> bool:
        return False

    @app.cron("*/5 * * * *", reason="a test", when=something_to_do)
    async def crawl() -> None: ...

    @app.cron("*/5 * * * *", reason="a test")
    async def count() -> None:
        await app.db.rows("select what from effects")

    @app.cron("*/5 * * * *", reason="a test")
    async def fail() -> None:
        raise ValueError("no")

    @app.cron("*/5 * * * *", reason="a test", timeout=7_200)
    async def linger() -> None:
        await asyncio.sleep(700)

    @app.cron("*/5 * * * *", reason="a test", ceiling=ps.Ceiling(rows_read=1))
    async def spend() -> None:
        await app.db.rows("select count(*) from effects")

    async with TestApp(app, start=START) as shop:
        async with shop.unit():
            for number in range(3):
                app.db.write(EFFECT, what=str(number))
        await shop.advance(minutes=31)

        runs = await points.query(
            "select phase, blob4 as status, sum(double1) as runs, max(double2) as late, sum(double3) as seconds, "
            "sum(double4) as rows_read from points where trigger = 'tick' group by phase, blob4 order by 1, 2"
        )
        found = {(row.phase, row.status): row.runs for row in runs}
        assert found["crawl", "idle"] == found["count", "done"] == found["fail", "failed"] == 6
        assert (found["linger", "done"], found["linger", "skipped"]) == (1, 4)
        assert (found["spend", "done"], found["spend", "ceiling"]) == (1, 5)
        by_run = {(row.phase, row.status): row for row in runs}
        assert by_run["count", "done"].rows_read >= 18
        assert by_run["linger", "done"].seconds == pytest.approx(700, abs=1)
        assert by_run["count", "done"].late < 1

        idle = await points.query(
            "select blob1, blob2, blob3, double1, double2, double3, double4, double5, index1 from points "
            "where index1 = 'pipeline'"
        )
        assert [tuple(row) for row in idle] == [
            ("pipeline", "cron", "crawl_idle", 0.0, 0.0, 0.0, 0.0, None, "pipeline")
        ] * 6


class Bell(ps.Object):
    rung: int = 0

    async def wind(self) -> None:
        self.set_alarm(after=30)

    async def alarm(self) -> None:
        self.rung += 1
        if self.rung < 3:
            self.set_alarm(after=5)


@pytest.mark.spec("A10-06")
@virtual
async def test_alarms_tell_how_late_they_rang() -> None:
    app = ps.App("shop")
    bells = app.object(Bell)
    points = app.metrics("platform_metrics")
    async with TestApp(app, start=START) as shop:
        await bells["main"].wind()
        await shop.advance(seconds=130)

        assert await told(points, "alarm") == [("Bell", 3.0, pytest.approx(0, abs=0.01), pytest.approx(0, abs=0.01))]

        await bells["main"].wind()
        engine = shop._worker
        engine.pause()
        await shop.advance(seconds=50)
        engine.resume()
        await shop.advance(seconds=70)
        rung, lags, longest = (await told(points, "alarm"))[-1][1:]
        assert rung == 1.0
        assert 19 < lags == longest < 22


@pytest.mark.spec("A10-06")
@virtual
async def test_controllers_tell_their_batch_interval_and_rate() -> None:
    shelf = Shelf()
    points = shelf.app.metrics("platform_metrics")
    async with TestApp(shelf.app, start=START) as shop:
        await shelf.fill(shop, *(f"item {number:03}" for number in range(200)))
        await shop.advance(minutes=5)

        samples = await told(points, "controller")
        state = await shelf.app.controllers.status("enrichment")
        assert {name for name, *_ in samples} == {"enrichment"}
        for _, batch, interval, rate in samples:
            assert 1 <= batch <= 50
            assert 10_000 <= interval <= 120_000
            assert rate == pytest.approx(batch / interval * 1_000, rel=0.01)
        assert samples[-1][1] <= state["current_batch_size"] + 10


@pytest.mark.spec("A10-06")
@virtual
async def test_workflows_tell_how_many_steps_were_done_and_failed() -> None:
    lab = Lab()
    points = lab.app.metrics("platform_metrics")

    @lab.app.workflow
    async def research(run: ps.Run) -> None:
        for part in "abc":
            await run.step(part, lab.write, part)
        await run.sleep(minutes=10)
        await run.step("d", lab.write, "d")

    @lab.app.workflow
    async def doomed(run: ps.Run) -> None:
        async def fail() -> None:
            raise ps.Gone("no")

        await run.step("good", lab.write, "good")
        await run.step("bad", fail)

    async with TestApp(lab.app, start=START) as shop:
        async with shop.unit():
            research.start()
            doomed.start()
        await shop.advance(minutes=20)

        found = await points.query(
            "select phase, sum(double1), sum(double2) from points where trigger = 'workflow' group by phase order by phase"
        )
        assert [tuple(row) for row in found] == [("doomed", 1.0, 1.0), ("research", 4.0, 0.0)]


@pytest.mark.spec("A10-06")
@virtual
async def test_the_cost_to_date_and_the_rows_read_are_reported() -> None:
    async def handle(listing: Listing, message: ps.Message[Listing]) -> None:
        app.db.write(EFFECT, what=listing.name)
        await app.db.rows("select what from effects")

    app, listings = shop_app(handle)
    points = app.metrics("platform_metrics")
    async with TestApp(app, start=START) as shop:
        for number in range(20):
            await shop.send(listings, Listing(name=str(number)))
        await shop.advance(seconds=61)
        first = await told(points, "cost", "double1, double2, double3, double4")
        month = await app.db.usage()
        for _ in range(15):
            await shop.send(listings, Listing(name="more"))
            await shop.advance(minutes=1)
        later = await told(points, "cost", "double1, double2, double3, double4")

    used = (month.total.rows_read, month.total.rows_written, month.total.queue_operations)
    assert first == [("2026-03", month.usd, *map(float, used))]
    assert first[0][3] == 20
    assert len(later) == 2  # every ten minutes
    assert later[1][2] > first[0][2]


# -- how much it costs ----------------------------------------------------------------------------------------


@virtual
async def test_an_idle_app_looks_at_nothing_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []

    def counted(file: Any, store: Any, *, now: int, every_seconds: float) -> list[Fact] | None:
        looks.append(now)
        return look(file, store, now=now, every_seconds=every_seconds)

    monkeypatch.setattr(standard, "look", counted)

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle)
    points = app.metrics("platform_metrics")
    async with TestApp(app, start=START) as shop:
        await shop.advance(hours=1)
        assert looks == []
        await shop.send(listings, Listing(name="one"))
        await shop.advance(hours=10)
        assert len(looks) == 1
        [row] = await points.query("select count(*) as n, max(at) as last from points")
        assert 1 <= row.n <= 3
        assert row.last < "2026-03-01 13:02:30"


@virtual
async def test_without_a_history_there_are_no_standard_points_but_those_that_are_written() -> None:
    app, listings = shop_app()
    app.config = Config(history=False)
    points = app.metrics("platform_metrics")

    @listings.handler(Listing)
    async def handle(listing: Listing) -> None:
        points.write(blobs=("a",), index="a")

    async with TestApp(app, start=START) as shop:
        app.config = Config(history=False, synchronous="off")
        await shop.restart()
        await shop.send(listings, Listing(name="one"))
        await shop.advance(minutes=5)
        assert [row[0] for row in await points.query("select index1 from points")] == ["a"]


@virtual
async def test_a_poll_that_fails_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> list[Fact]:
        raise StoreUnavailable("away")

    monkeypatch.setattr(standard, "look", broken)

    async def handle(listing: Listing, message: ps.Message[Listing]) -> None: ...

    app, listings = shop_app(handle)
    async with TestApp(app, start=START) as shop:
        for _ in range(3):
            await shop.send(listings, Listing(name="one"))
            await shop.advance(minutes=2)
        assert (await shop.counts(listings)).acked == 3


@pytest.mark.only_on("sqlite")
def test_of_several_processes_one_looks_in_five_minutes(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "shop.db")
    store.open_writer(now=1).close()
    minute = 60_000_000
    files = [store.open_history() for _ in range(2)]

    def kinds(now: int) -> list[list[str] | None]:
        looks = [look(file, store, now=now, every_seconds=300.0) for file in files]
        return [None if facts is None else [fact.kind for fact in facts] for facts in looks]

    assert [kinds(minutes * minute) for minutes in (10, 14, 15, 20)] == [
        [["cost"], None],  # nothing else is there yet, and the cost is told every ten minutes
        [None, None],
        [[], None],
        [["cost"], None],
    ]
    for file in files:
        file.close()
