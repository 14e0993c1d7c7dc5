"""Category scan: what a chart leaves in the tables, what it must not overwrite, and what becomes of one that fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import outside
from penstock_systems.appstore.crawl import charts
from penstock_systems.appstore.crawl.registry import app_row, developer_rows
from penstock_systems.appstore.crawl.tiers import Category
from penstock_systems.appstore.store.facts import Found
from penstock_systems.standins.appstore import Fault, Limit, Manners
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import THEN, crawling, cycle, found, insert_apps, insert_keywords, write

NOW = "2026-01-01 12:00:00"
FULL = Found(
    track_id=17,
    title="Calm Sleep Meditation",
    bundle_id="com.calm.sleep",
    developer="Calm Labs",
    developer_id=9,
    developer_website="https://calm.example",
    score=4.5,
    ratings=1_200,
    genre="Health & Fitness",
    genre_id=6013,
    price=4.99,
    formatted_price=None,
    icon="https://img.example/17.png",
    url="https://apps.apple.com/us/app/id17",
    description="d" * 5_000,
    released="2020-01-02 03:04:05",
    version="1.2.3",
    content_rating="4+",
    languages=("EN", "DE"),
    screenshots=("https://img.example/1.png",),
)

Answer = Callable[[str, int | None], list[Found]]


def answering(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> list[tuple[str, int | None, int]]:
    """Charts come from the test; what was asked for is noted."""
    asked: list[tuple[str, int | None, int]] = []

    async def chart(collection: str, genre_id: int | None = None, limit: int = 200) -> list[Found]:
        asked.append((collection, genre_id, limit))
        return answer(collection, genre_id)

    monkeypatch.setattr(outside.store, "chart", chart)
    return asked


async def only_due(it: Pipeline, *ids: int) -> None:
    for id in ids:
        await write(it, "update category_scans set next_scan_at = '' where id = :id", id=id)


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B2-16", "A8-16")
def test_every_field_of_an_answer_has_its_column() -> None:
    row = app_row(FULL, source="chart", now=NOW)
    assert {name: getattr(value, "text", value) for name, value in row.items()} == {
        "track_id": 17,
        "bundle_id": "com.calm.sleep",
        "track_name": "Calm Sleep Meditation",
        "seller_name": "Calm Labs",
        "average_rating": 4.5,
        "rating_count": 1_200,
        "primary_genre": "Health & Fitness",
        "price": 4.99,
        "formatted_price": "$4.99",
        "artwork_url": "https://img.example/17.png",
        "track_view_url": "https://apps.apple.com/us/app/id17",
        "description": "d" * 2_000,
        "release_date": "2020-01-02 03:04:05",
        "version": "1.2.3",
        "version_released_at": None,
        "content_rating": "4+",
        "languages": '["EN","DE"]',
        "screenshots": '["https://img.example/1.png"]',
        "subtitle": None,
        "developer_id": 9,
        "developer_website": "https://calm.example",
        "data_source": "chart",
        "first_seen_at": NOW,
        "last_seen_at": NOW,
    }
    assert app_row(found(1, price=0.0), source="chart", now=NOW)["formatted_price"] == "Free"
    assert app_row(found(1), source="chart", now=NOW)["formatted_price"] is None


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B2-18", "A8-07")
def test_a_developer_of_many_apps_is_one_row_with_what_any_of_them_tells() -> None:
    apps = [
        found(
            n, developer_id=n % 10, developer=None if n < 10 else f"D{n % 10}", developer_website=f"https://{n}.example"
        )
        for n in range(200)
    ]
    rows = developer_rows([*apps, found(999)], now=NOW)
    assert [row["developer_id"] for row in rows] == list(range(10))
    assert rows[3] == {"developer_id": 3, "name": "D3", "website": "https://3.example", "first_seen_at": NOW}


@pytest.mark.spec("B2-17", "G2-12", "B2-18")
async def test_what_a_second_source_does_not_say_stays_as_it_was_and_what_it_says_is_new(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        bare = Found(track_id=17, developer_id=9, price=0.0, genre="Games")
        for answer in (FULL, bare):
            answering(monkeypatch, lambda *_, answer=answer: [answer])
            await only_due(it, 1)
            await cycle(it)

        [row] = await it.sql(
            "select track_name, seller_name, average_rating, rating_count, primary_genre, price, formatted_price,"
            " description, version, languages, first_seen_at, last_seen_at, data_source from app_registry"
        )
        assert (row.track_name, row.seller_name) == ("Calm Sleep Meditation", "Calm Labs")
        assert (row.average_rating, row.rating_count) == (4.5, 1_200)
        assert (row.primary_genre, row.price, row.formatted_price) == ("Games", 0.0, "Free")
        assert (len(row.description), row.version, row.languages) == (2_000, "1.2.3", '["EN","DE"]')
        assert row.first_seen_at < row.last_seen_at
        [developer] = await it.sql("select name, website from developers")
        assert tuple(developer) == ("Calm Labs", "https://calm.example")


@pytest.mark.spec("B2-16")
async def test_an_app_of_which_nothing_is_known_but_its_id_gets_the_names_for_that(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        answering(monkeypatch, lambda *_: [Found(track_id=1, developer_id=2), FULL])
        await only_due(it, 1)
        await cycle(it)
        [row] = await it.sql("select track_name, seller_name, rating_count from app_registry where track_id = 1")
        assert tuple(row) == ("Unknown", "Unknown", 0)
        assert await it.sql("select name from developers where developer_id = 2") == [("Unknown",)]


@pytest.mark.spec("B2-04", "B2-12", "B2-14", "G2-10", "A8-08")
async def test_three_charts_of_two_hundred_are_saved_whole_with_their_history(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline, charts=True) as it:
        batches: list[int] = []
        real = shared.db.insert_many

        def noted(table: str, rows: Any, /) -> Any:
            if table == "chart_position_history":
                batches.append(len(rows))
            return real(table, rows)

        monkeypatch.setattr(shared.db, "insert_many", noted)
        asked = answering(monkeypatch, lambda _, genre: [found((genre or 0) * 1_000 + n) for n in range(200)])
        stats = await cycle(it)

        assert [(genre, limit) for _, genre, limit in asked] == [(genre, 200) for _, genre, _ in asked]
        assert (stats["phase"], stats["categories_scanned"], len(asked)) == ("category_scan", 3, 3)
        assert batches == [50] * 12  # four a chart
        scanned = await it.sql(
            "select category, apps_found, attempts, last_error from category_scans where scanned_at > ''"
        )
        assert [tuple(row)[1:] for row in scanned] == [(200, 0, None)] * 3
        for table in ("chart_positions", "chart_position_history"):
            assert (await it.sql(f"select count(*) from {table}"))[0][0] == 600
        [first] = await it.sql(
            "select rank, snapshot_at from chart_positions where category = :category order by rank limit 1",
            category=scanned[0].category,
        )
        assert first.rank == 1
        assert first.snapshot_at.startswith("2026-01-01 00:00")


@pytest.mark.spec("G2-10")
async def test_a_scan_that_is_saved_again_leaves_its_history_as_it_is(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        category = Category(id=1, collection="topfreeapplications", category="6014", priority="high")
        apps = [found(n) for n in range(1, 121)]
        assert await charts.save_chart(category, apps, scan_id="1@then") == 120
        await it.running.advance(seconds=5)
        assert await charts.save_chart(category, apps[:50], scan_id="1@then") == 0

        assert (await it.sql("select count(*) from chart_position_history"))[0][0] == 120
        assert (await it.sql("select count(*) from chart_positions"))[0][
            0
        ] == 50  # who left the chart has no place in it
        assert await charts.save_chart(category, apps, scan_id="1@later") == 0
        assert (await it.sql("select count(*) from chart_position_history"))[0][0] == 240


@pytest.mark.spec("B2-14", "B2-19")
async def test_titles_of_a_chart_become_keywords_that_wait_to_be_searched(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        answering(
            monkeypatch,
            lambda *_: [found(1, "Calm Sleep Meditation App"), found(2, "Sleep & Meditation"), found(3, "")],
        )
        await insert_keywords(it, {"keyword": "sleep", "source": "seed", "status": "searched", "priority": 7})
        await only_due(it, 1)
        await cycle(it)

        rows = await it.sql(
            "select keyword, source, source_keyword, depth, status, priority from crawl_keywords order by keyword"
        )
        made = {row.keyword: tuple(row)[1:] for row in rows}
        fresh = ("category_scan", None, 0, "pending", 0)
        assert made == {
            "calm sleep": fresh,
            "calm sleep meditation": fresh,
            "meditation": fresh,
            "sleep": ("seed", None, 0, "searched", 7),
            "sleep meditation": fresh,
        }


HOSTILE = (
    "<script>alert('Sleep Sounds')</script>",
    '=HYPERLINK("https://evil.example","Sleep")',
    "'; drop table app_registry; --",
    "\u202esdnuoS peelS\u202c",
    "👩‍👩‍👧 Sleep 🛌🏽",
    "睡眠記録アプリ",
    "a\x07b\x1b[31mc",
    "W" * 3_000,
)


async def test_any_name_of_an_app_is_kept_as_it_is_and_does_no_harm(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        answering(
            monkeypatch,
            lambda *_: [found(n, title, developer=title, developer_id=n) for n, title in enumerate(HOSTILE)],
        )
        await only_due(it, 1)
        stats = await cycle(it)
        assert (stats["categories_scanned"], stats["errors"]) == (1, [])
        kept = await it.sql("select track_name from app_registry order by track_id")
        assert [row.track_name for row in kept] == list(HOSTILE)
        for row in await it.sql("select keyword from crawl_keywords"):
            assert len(row.keyword) <= 60


@pytest.mark.spec("B2-15", "G2-08")
async def test_a_chart_that_fails_waits_longer_each_time_and_holds_up_no_other(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:

        def answer(_: str, genre: int | None) -> list[Found]:
            if genre == 6014:
                raise ps.Unparsable("This is no chart.", reason="bad_shape")
            return [found(1)]

        asked = answering(monkeypatch, answer)
        await only_due(it, 1, 2)  # the first of them is the genre that fails
        stats = await cycle(it)
        assert stats["categories_scanned"] == 1
        assert stats["errors"] == ["topfreeapplications/6014: Unparsable: This is no chart."]
        outcomes = "select attempts, last_error, scanned_at, next_scan_at from category_scans where id = 1"
        [row] = await it.sql(outcomes)
        assert (row.attempts, row.last_error, row.scanned_at) == (1, "Unparsable: This is no chart.", None)
        assert row.next_scan_at.startswith("2026-01-01 01:00")

        asked.clear()
        await cycle(it)
        assert asked == []  # neither is due
        await it.running.advance(hours=1)
        await cycle(it)
        assert [genre for _, genre, _ in asked] == [6014]
        [row] = await it.sql(outcomes)
        assert row.attempts == 2
        assert row.next_scan_at.startswith("2026-01-01 03:00")


@pytest.mark.spec("B2-15")
async def test_an_empty_chart_is_read_again_the_next_day_and_the_last_places_stay(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        for apps in ([found(1)], []):
            answering(monkeypatch, lambda *_, apps=apps: apps)
            await only_due(it, 1)
            await cycle(it)
        [row] = await it.sql("select apps_found, last_error, attempts, next_scan_at from category_scans where id = 1")
        assert (row.apps_found, row.last_error, row.attempts) == (0, "The chart was empty.", 0)
        assert row.next_scan_at.startswith("2026-01-02 00:00")
        assert (await it.sql("select count(*) from chart_positions"))[0][0] == 1


@pytest.mark.spec("B2-15")
async def test_a_refusal_costs_no_attempt_and_ends_the_scans_of_this_cycle(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:

        def refuse(*_: object) -> list[Found]:
            raise ps.Throttled("Slow down.", retry_after=3_600)

        asked = answering(monkeypatch, refuse)
        await only_due(it, 1, 2, 3)
        stats = await cycle(it)
        assert len(asked) == 1
        assert stats["categories_scanned"] == 0
        [row] = await it.sql("select attempts, next_scan_at from category_scans where id = 1")
        assert row.attempts == 0
        assert row.next_scan_at.startswith("2026-01-01 01:00")


async def test_a_chart_that_cannot_be_saved_does_not_stand_at_the_head_for_ever(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        broken = found(1, "half a character \ud800")
        answering(monkeypatch, lambda _, genre: [broken] if genre == 6014 else [found(2)])
        await only_due(it, 1, 2)
        stats = await cycle(it)
        assert stats["categories_scanned"] == 1
        [row] = await it.sql("select attempts, last_error from category_scans where id = 1")
        assert row.attempts == 1
        assert "half a character" in row.last_error
        assert await it.sql("select track_id from app_registry") == [(2,)]


@pytest.mark.spec("B2-12")
async def test_charts_of_the_stand_in_fill_the_registry(pipeline: Opened) -> None:
    async with crawling(pipeline, charts=True, apps=1_500, markets=8) as it:
        stats = await cycle(it)
        assert stats["categories_scanned"] == 3
        assert stats["apps_discovered"] == await shared.db.count("app_registry") > 50
        assert stats["enrichment"]["waiting"] is False  # nothing waited when the cycle began
        assert (await cycle(it))["enrichment"]["waiting"] is True


@pytest.mark.spec("B2-07", "B2-15")
async def test_when_the_charts_are_down_each_is_noted_and_the_next_cycle_tries_others(pipeline: Opened) -> None:
    down = Manners(limits={}, latency_seconds={}, faults=(Fault("error", endpoint="chart"),))
    async with crawling(pipeline, charts=True, manners=down) as it:
        for _ in range(2):
            assert (await cycle(it))["categories_scanned"] == 0
        tried = await it.sql("select attempts, scanned_at from category_scans where attempts > 0")
        assert [tuple(row) for row in tried] == [(1, None)] * 6


async def test_a_limit_on_charts_is_kept_without_losing_any(pipeline: Opened) -> None:
    strict = Manners(limits={"chart": Limit(2, seconds=3_600)}, latency_seconds={}, faults=())
    async with crawling(pipeline, charts=True, manners=strict) as it:
        stats = await cycle(it)
        assert stats["categories_scanned"] == 2
        assert (await it.sql("select count(*) from category_scans where attempts > 0"))[0][0] == 0


async def test_an_app_that_was_enriched_keeps_the_facts_of_its_page(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(
            it, {"track_id": 17, "subtitle": "Rest", "screenshots": '["a"]', "enriched_at": THEN, "enrich_priority": 9}
        )
        answering(monkeypatch, lambda *_: [Found(track_id=17, title="New Name", screenshots=(), languages=())])
        await only_due(it, 1)
        await cycle(it)
        [row] = await it.sql("select track_name, subtitle, screenshots, enriched_at, enrich_priority from app_registry")
        assert tuple(row) == ("New Name", "Rest", '["a"]', THEN, 9)


@pytest.mark.spec("A8-08", "B2-14")
@pytest.mark.parametrize("point", ["commit.written", "commit.before", "commit.after"])
async def test_a_worker_that_dies_while_a_chart_is_saved_leaves_all_of_it_or_nothing(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    async with crawling(pipeline, charts=True) as it:
        answering(monkeypatch, lambda _, genre: [found((genre or 0) * 1_000 + n) for n in range(120)])
        await it.running.advance(seconds=1)
        await shared.app.crons.trigger("crawl")
        await it.running.crash(at=point, nth=3)
        await it.running.drain()

        assert it.running.workers_started == 2
        scanned = await it.sql("select id from category_scans where scanned_at is not null")
        places = Counter(map(tuple, await it.sql("select collection, category from chart_positions")))
        history = Counter(map(tuple, await it.sql("select collection, category from chart_position_history")))
        assert len(scanned) == len(places) >= 3
        assert set(places.values()) == {120}
        assert history == places
