"""Data points are written from anywhere, cost nobody anything, and are there when somebody asks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import penstock as ps
from penstock.config import Config
from penstock.contracts.history import HistoryFile
from penstock.metrics import book
from penstock.metrics.asking import named
from penstock.metrics.book import PointsDropped, PointsFailed, PointsRefused, QuotaSpent
from penstock.metrics.standard import Dataset
from penstock.model.errors import BadApp, BadParameter, StoreUnavailable, TooManyRows
from penstock.queues.queue import Queue
from penstock.runtime.events import EngineEvent
from penstock.testing import TestApp, virtual
from tests.flow.shop import EFFECT, Listing, shop_app

START = datetime(2026, 3, 1, 12, 0, 30, tzinfo=UTC)
BY_PHASE = """
select phase, sum(double1) as apps, sum(double2) as rankings
from points
where index1 = :service
and at >= :since
group by phase
order by phase
"""


def crawler() -> tuple[ps.App, Queue[Listing], Dataset]:
    """Each listing is a phase of a crawl that has found three apps and two rankings."""
    app, listings = shop_app(retries=0)
    points = app.metrics("platform_metrics", service="pipeline")

    @listings.handler(Listing)
    async def crawl(listing: Listing) -> None:
        app.db.write(EFFECT, what=listing.name)
        points.write(blobs=("pipeline", "cron", listing.name), doubles=(3, 2, 1, 0), index="pipeline")

    return app, listings, points


async def count(points: Dataset) -> int:
    """The points that an app has written itself."""
    [row] = await points.query("select count(*) from points where index1 <> 'penstock' or index1 is null")
    return int(row[0])


@pytest.mark.spec("A10-01", "A10-03", "G2-47")
@virtual
async def test_points_written_in_handlers_are_added_up_by_phase_over_a_day() -> None:
    app, listings, points = crawler()
    async with TestApp(app, start=START) as shop:
        await shop.send(listings, Listing(name="too old"))
        await shop.advance(hours=25)
        for name in ("category_scan", "keyword_scan", "category_scan"):
            await shop.send(listings, Listing(name=name))
        await shop.advance(seconds=5)

        found = await points.query(BY_PHASE, service="pipeline", since=await app.db.ago("24h"))
        assert [tuple(row) for row in found] == [("category_scan", 6.0, 4.0), ("keyword_scan", 3.0, 2.0)]
        assert found[0].phase == "category_scan"
        # The second word is what triggered it: who takes it for the phase adds up everything.
        wrong = await points.query(
            "select blob2 as phase, sum(double1) as apps from points where index1 = 'pipeline' group by 1"
        )
        assert [tuple(row) for row in wrong] == [("cron", 12.0)]


@pytest.mark.spec("A10-01")
@virtual
async def test_a_point_is_kept_exactly_as_it_was_written() -> None:
    app = ps.App("shop")
    points = app.metrics("sales", names={"shop_name": "blob1", "price": "double1"})
    async with TestApp(app, start=START):
        points.write(blobs=("a", "b", "c"), doubles=(1, 2.5, True), index="i")

        [row] = await points.query(
            "select at, index1, blob1, blob2, blob3, blob4, double1, double2, double3, double4, shop_name, price from points"
        )
        assert tuple(row) == ("2026-03-01 12:00:30", "i", "a", "b", "c", None, 1.0, 2.5, 1.0, None, "a", 1.0)


async def used(points_written: int) -> tuple[Any, ...]:
    """What an app has used that writes so many points with each of two messages."""
    app, listings = shop_app()
    points = app.metrics("platform_metrics")

    @listings.handler(Listing)
    async def handle(listing: Listing) -> None:
        app.db.write(EFFECT, what=listing.name)
        for number in range(points_written):
            points.write(blobs=("a", str(number)), doubles=(number,), index="a")

    async with TestApp(app, start=START) as shop:
        for name in ("one", "two"):
            await shop.send(listings, Listing(name=name))
            await shop.advance(minutes=3)
        assert await count(points) == 2 * points_written
        engine = await app._opened()
        usage = await app.db.usage()
        statements = sorted((each.task, each.statement, each.rows_read, each.rows_written) for each in usage.statements)
        return usage.total.rows_read, usage.total.rows_written, statements, engine.scheduler.saved


@pytest.mark.spec("A10-01")
@virtual
async def test_writing_costs_no_row_of_the_database_and_no_commit() -> None:
    assert await used(500) == await used(0)


@pytest.mark.spec("A10-01")
@virtual
async def test_while_points_cannot_be_saved_work_goes_on_and_they_are_saved_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app, listings, points = crawler()
    told: list[EngineEvent] = []
    app.events.subscribe(told.append, to=PointsFailed)
    async with TestApp(app, start=START) as shop:
        engine = await app._opened()
        works = engine.history._open_file

        def down() -> HistoryFile:
            raise StoreUnavailable("The metrics are down.")

        monkeypatch.setattr(engine.history, "_open_file", down)
        for _ in range(3):
            await shop.send(listings, Listing(name="scan"))
            await shop.advance(seconds=40)
        assert len(shop.delivered(listings)) == 3
        assert (await shop.counts(listings)).acked == 3
        assert told == [PointsFailed("The metrics are down.")]  # once
        with pytest.raises(StoreUnavailable):
            await points.query(BY_PHASE, service="pipeline", since="2026")

        monkeypatch.setattr(engine.history, "_open_file", works)
        await shop.advance(seconds=40)
        assert [tuple(row) for row in await points.query(BY_PHASE, service="pipeline", since="2026")] == [
            ("scan", 9.0, 6.0)
        ]
        assert points.counts[1:] == (0, 0)


@virtual
async def test_what_finds_no_room_while_nothing_can_be_saved_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book, "PENDING_MAX", 10)
    app = ps.App("shop")
    points = app.metrics("sales")
    told: list[PointsDropped] = []
    app.events.subscribe(told.append, to=PointsDropped)
    async with TestApp(app) as shop:
        engine = await app._opened()
        works = engine.history._open_file

        def down() -> HistoryFile:
            raise StoreUnavailable("The metrics are down.")

        monkeypatch.setattr(engine.history, "_open_file", down)
        for number in range(25):
            points.write(doubles=(number,))
            await shop.advance(seconds=2)
        assert points.counts.dropped == 15

        monkeypatch.setattr(engine.history, "_open_file", works)
        await shop.advance(seconds=40)
        kept = await points.query("select double1 from points order by double1")
        assert [row[0] for row in kept] == [float(number) for number in range(10)]
        assert points.counts == (10, 15, 0)
        assert told == [PointsDropped(15)]


# -- bad input ------------------------------------------------------------------------------------------------


class Rude:
    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no")

    def __str__(self) -> str:
        raise RuntimeError("no")


BAD: list[dict[str, Any]] = [
    {"blobs": ("x",) * 21},
    {"doubles": (1.0,) * 21},
    {"blobs": "text"},
    {"blobs": b"bytes"},
    {"blobs": {"a": 1}},
    {"doubles": {1.0, 2.0}},
    {"blobs": 7},
    {"doubles": None},
    {"blobs": Rude()},
    {"blobs": (Rude(),)},
    {"blobs": (["nested"],)},
    {"blobs": ("a", object())},
    {"doubles": ("12",)},
    {"doubles": (float("nan"),)},
    {"doubles": (float("inf"),)},
    {"doubles": (10**400,)},
    {"doubles": (1e300,)},
    {"doubles": (1j,)},
    {"index": ["a"]},
    {"index": ("a", "b")},
    {"index": b"a"},
]


@pytest.mark.spec("A10-01")
@virtual
async def test_what_is_no_point_raises_nothing_and_is_counted_and_reported_once() -> None:
    app = ps.App("shop")
    points = app.metrics("sales")
    told: list[PointsRefused] = []
    app.events.subscribe(told.append, to=PointsRefused)
    async with TestApp(app) as shop:
        for bad in BAD:
            points.write(**bad)
            await shop.advance(seconds=2)
        points.write(blobs=("good",), doubles=(1,))

        assert [tuple(row) for row in await points.query("select blob1, double1 from points")] == [("good", 1.0)]
        assert points.counts == (1, 0, len(BAD))
        assert len(told) == 1
        assert told[0].reason == "it has 21 blobs, and 20 are the most"


@virtual
async def test_text_is_cut_at_its_bound_and_made_fit_to_be_stored() -> None:
    app = ps.App("shop")
    points = app.metrics("sales")
    hostile = "\x00\ud83d\x1b]0;\u202eevil =1+1 <b>'\";drop table points--🙂"
    async with TestApp(app):
        words: Any = (hostile, "é" * 5_000, "", None, 12, 1.5, True)
        points.write(blobs=words, doubles=[7], index="🙂" * 5_000)

        [row] = await points.query(
            "select blob1, blob2, blob3, blob4, blob5, blob6, blob7, double1, index1 from points"
        )
        assert row[0] == hostile.replace("\x00", "?").replace("\ud83d", "?")
        assert tuple(row[1:]) == ("é" * 256, "", None, "12", "1.5", "True", 7.0, "🙂" * 96)


# -- quotas ---------------------------------------------------------------------------------------------------


def with_quotas(**limits: int) -> ps.App:
    return ps.App("shop", config=Config(profile="cloudflare", overrides=limits))


@pytest.mark.spec("A10-02")
def test_the_platforms_quotas_are_its_profiles_and_there_are_none_otherwise() -> None:
    platform, local = Config(profile="cloudflare").limits, Config().limits

    assert (platform.metric_writes_per_day_max, platform.metric_reads_per_day_max) == (100_000, 10_000)
    assert (local.metric_writes_per_day_max, local.metric_reads_per_day_max) == (None, None)


@pytest.mark.spec("A10-02", "A15-18")
@virtual
async def test_over_the_days_writes_points_are_dropped_and_counted_until_midnight() -> None:
    app = with_quotas(metric_writes_per_day_max=50)
    points = app.metrics("sales")
    told: list[PointsDropped] = []
    app.events.subscribe(told.append, to=PointsDropped)
    async with TestApp(app, start=datetime(2026, 3, 1, 22, tzinfo=UTC)) as shop:
        for _ in range(7):
            for _ in range(10):
                points.write(doubles=(1,))
            await shop.advance(seconds=2)
        assert (points.counts.written, points.counts.dropped, await count(points)) == (50, 20, 50)
        assert len(told) == 1

        await shop.restart()  # a new process knows what the day has used
        for _ in range(10):
            points.write(doubles=(1,))
        assert await count(points) == 50
        assert points.counts == (0, 10, 0)

        await shop.advance(hours=2, minutes=1)
        points.write(doubles=(1,))
        assert await count(points) == 51


@pytest.mark.spec("A10-02", "A15-18")
@virtual
async def test_over_the_days_reads_a_question_is_refused_until_midnight() -> None:
    app = with_quotas(metric_reads_per_day_max=3)
    points = app.metrics("sales")
    async with TestApp(app, start=datetime(2026, 3, 1, 22, tzinfo=UTC)) as shop:
        points.write(doubles=(1,))
        for _ in range(2):
            assert await count(points) == 1
        await shop.restart()
        assert await count(points) == 1
        with pytest.raises(QuotaSpent, match="queried 3 times today"):
            await count(points)
        points.write(doubles=(1,))

        await shop.advance(hours=3)
        assert await count(points) == 2


# -- when and where -------------------------------------------------------------------------------------------


@virtual
async def test_points_written_before_the_app_is_open_are_saved_when_it_is() -> None:
    app, _, points = crawler()
    points.write(blobs=("pipeline", "cron", "early"), doubles=(1,), index="pipeline")
    async with TestApp(app, start=START):
        assert await count(points) == 1


@virtual
async def test_a_stopped_worker_has_saved_everything_and_a_killed_one_lacks_its_last_second() -> None:
    app, listings, points = crawler()
    async with TestApp(app, start=START) as shop:
        await shop.send(listings, Listing(name="stopped"))
        await shop.advance(seconds=0.5)
        await shop.restart()
        await shop.send(listings, Listing(name="saved"))
        await shop.advance(seconds=2)
        await shop.send(listings, Listing(name="lost"))
        await shop.advance(seconds=0.5)
        await shop.kill()
        await shop.advance(seconds=2)
        await shop.send(listings, Listing(name="after"))
        await shop.advance(seconds=2)

        found = await points.query("select distinct phase from points where index1 = 'pipeline' order by phase")
        assert [row.phase for row in found] == ["after", "saved", "stopped"]
        assert len(shop.delivered(listings)) == 4


@pytest.mark.spec("A10-07")
@virtual
async def test_after_90_days_points_are_gone_and_their_sums_are_not() -> None:
    app = ps.App("shop")
    points = app.metrics("sales")
    async with TestApp(app, start=START) as shop:
        for number in range(3):
            points.write(blobs=("old",), doubles=(number,), index="i")
        await shop.advance(days=89)
        points.write(blobs=("young",), doubles=(5,), index="i")
        await shop.advance(seconds=5)
        assert await count(points) == 4
        await shop.advance(days=2)
        points.write(blobs=("new",), doubles=(7,), index="i")
        await shop.advance(seconds=5)

        assert [row.blob1 for row in await points.query("select blob1 from points order by at")] == ["young", "new"]
        for span in ("hours", "days"):
            [old] = await points.query(f"select count, sum, min, max from {span} where blob1 = 'old' and place = 1")
            assert tuple(old) == (3, 3.0, 0.0, 2.0)


@virtual
async def test_an_answer_of_too_many_rows_is_refused() -> None:
    app = ps.App("shop")
    points = app.metrics("sales")
    async with TestApp(app):
        for _ in range(101):
            points.write(doubles=(1,))
        with pytest.raises(TooManyRows, match="Group them"):
            await points.query("select a.at from points a join points b on a.double1 = b.double1")
        with pytest.raises(BadParameter, match="missing: since"):
            await points.query("select at from points where at >= :since")


# -- declaring ------------------------------------------------------------------------------------------------


def test_a_dataset_declared_twice_is_one_and_knows_all_names() -> None:
    app = ps.App("shop")
    first = app.metrics("sales", names={"shop_name": "blob1"})
    second = app.metrics("sales", names={"price": "double1"})

    assert first is second
    assert first.names.columns == {"shop_name": "blob1", "price": "double1"}
    assert app.metrics("platform_metrics").names.columns == {"service": "blob1", "trigger": "blob2", "phase": "blob3"}
    with pytest.raises(BadApp, match="stands for double1 and for double2"):
        app.metrics("sales", names={"price": "double2"})


@pytest.mark.parametrize(
    "dataset, names",
    [
        ("", {}),
        ("sales; drop table", {}),
        ("x" * 65, {}),
        ("sales", {"phase": "blob21"}),
        ("sales", {"phase": "double0"}),
        ("sales", {"at": "blob1"}),
        ("sales", {"blob2": "blob1"}),
        ("sales", {'x" from penstock_messages --': "blob1"}),
        ("sales", {"Phase": "blob1"}),
    ],
)
def test_names_that_could_not_be_asked_for_are_refused(dataset: str, names: dict[str, str]) -> None:
    with pytest.raises(BadApp):
        named(dataset, names)
