"""The report's facts: read out of the database, the same to the byte, with no clock in them."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.reading import report
from penstock_systems.appstore.reading.facts import PacePoint, Report
from penstock_systems.appstore.reading.page import html
from penstock_systems.appstore.reading.plots import in_words, pace_plots
from tests.systems.appstore import market_rows
from tests.systems.appstore.conftest import Opened

POINTS = [
    PacePoint(at=f"2026-01-{1 + hour // 24:02d} {hour % 24:02d}:00:00", pace=hour % 7, limit=8.0, refused=hour % 5 == 0)
    for hour in range(120)
]


async def made(pipeline: Opened, **wanted: object) -> Report:
    async with pipeline(**wanted):
        await market_rows.fill(shared.app)
        return await report.gather(shared.db, pace=POINTS, notes=["The store was a stand-in."])


async def test_a_report_says_what_the_database_holds(pipeline: Opened) -> None:
    found = await made(pipeline)

    assert (found.begins, found.ends) == ("2026-01-01 00:12:00", "2026-01-06 17:30:00")
    assert msgspec.to_builtins(found.figures) == {
        "apps": 102,
        "enriched": 77,
        "developers": 32,
        "keywords": 26,
        "rankings": 216,
        "reviews": 15,
        "markets": 9,
        "opportunities": 4,
    }
    assert [market.id for market in found.markets] == [101, 102, 106, 104, 103, 107, 108, 105, 190]
    assert found.markets[1].history[0] == 52.05
    assert found.markets[1].history[-1] == found.markets[1].score == 72.05
    assert [each.verdict for each in found.opportunities] == ["build", "build", "explore", "avoid"]
    assert found.opportunities[0].playbooks == ["Week 1: one page.\nWeek 2: ten users."]
    assert [each["rank"] for each in found.trends["climbers"]][:3] == [1, 2, 3]


async def test_the_funnel_counts_apps_by_stage(pipeline: Opened) -> None:
    found = await made(pipeline)

    assert [(stage.name, stage.apps) for stage in found.funnel] == [
        ("discovered", 102),
        ("enriched", 77),  # without those that failed for good
        ("scored", 82),
        ("clustered", 82),
        ("evaluated", 47),
    ]


async def test_two_databases_of_the_same_content_give_the_same_bytes(pipeline: Opened) -> None:
    one, other = await made(pipeline), await made(pipeline)

    assert report.as_json(one) == report.as_json(other)
    assert html(one) == html(other)


async def test_no_clock_is_in_a_report(pipeline: Opened) -> None:
    """What the app has used is filed under the month in which it did; all else is the same years later."""
    early = await made(pipeline)
    late = await made(pipeline, start=datetime(2031, 7, 1, tzinfo=UTC))

    assert "2031" not in report.as_json(late).decode()
    assert msgspec.structs.replace(late, cost=early.cost) == early
    assert late.cost.lines == []


async def test_an_address_that_a_browser_should_not_follow_is_left_out(pipeline: Opened) -> None:
    found = await made(pipeline)

    leader, challenger, *_ = found.opportunities[0].reference_apps
    assert leader.url is None  # javascript:...
    assert challenger.url == "https://apps.example.com/us/app/id101001"


async def test_a_report_tells_who_wrote_its_evaluations(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)
        async with shared.app.unit():
            shared.db.write("update opportunity_evaluations set made_by = 'gpt-9' where cluster_id = 102")

        notes = (await report.gather(shared.db)).notes

    assert any("offline analyst 1: fixed rules" in note and "No language model was used" in note for note in notes)
    assert any("written by gpt-9" in note for note in notes)


async def test_usage_and_paid_calls_of_the_month_are_in_the_cost(pipeline: Opened) -> None:
    async with pipeline() as it:
        await market_rows.fill(shared.app)
        await shared.db.usage()
        found = await report.gather(shared.db)

        used = {line.name: line.used for line in found.cost.lines}
        assert found.cost.month == "2026-01"
        assert used["rows_written"] >= 1_000
        assert await it.sql("select id from api_calls_ledger") == []
        assert (found.cost.paid, found.cost.paid_usd) == ([], 0.0)


async def test_a_report_of_nothing_is_a_report(pipeline: Opened) -> None:
    async with pipeline():
        found = await report.gather(shared.db)

    assert (found.begins, found.ends, found.markets, found.opportunities) == (None, None, [], [])
    assert "The pipeline has no data yet." in html(found)


# -- the pace -------------------------------------------------------------------------------------------------------


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("minutes", [0, 1, 480, 481, 8_640])
def test_a_long_pace_is_thinned_and_no_refusal_is_lost(minutes: int) -> None:
    points = [
        PacePoint(at=f"2026-01-01 {minute % 1440 // 60:02d}:{minute % 60:02d}:00", pace=10.0, limit=12.0, refused=1)
        for minute in range(minutes)
    ]

    thin = report.thinned(points)

    assert len(thin) <= report.POINTS_MOST
    assert sum(point.refused for point in thin) == minutes
    assert {(point.pace, point.limit) for point in thin} <= {(10.0, 12.0)}


@pytest.mark.only_on("sqlite")
def test_the_pace_is_that_of_the_time_in_which_work_waited_and_the_outage_is_shown() -> None:
    steady = [msgspec.structs.replace(point, pace=4.0, limit=5.0, refused=0) for point in POINTS]
    idle = [msgspec.structs.replace(point, pace=0.0, busy=False) for point in steady[60:]]

    assert in_words([*steady[:60], *idle]) == (
        "While work waited, it read 4.0 pages a minute, 80 % of what the store would have borne; 0.0 % of the requests were "
        "refused. Then all was read, for 60 hours."
    )
    (wide, narrow) = pace_plots([*steady[:60], *idle])
    assert (wide["class"], narrow["class"], wide["unit"]) == ("wide", "narrow", "a minute")
    assert wide["line"].count(",") == 60  # the axis ends with the work
    out = [*steady[:50], *(msgspec.structs.replace(point, pace=0.0, out=True) for point in steady[50:60]), *steady[60:]]
    assert "80 % of what" in in_words(out)  # nothing can be read while the store is out of order
    assert "stopped for the outage" in in_words(out)
    assert len(pace_plots(out)[0]["outages"]) == 1
    slow = [msgspec.structs.replace(point, pace=0.5, limit=None) for point in steady]
    assert in_words(slow).startswith("While work waited, it read 30 pages an hour; ")
    assert pace_plots(slow)[0]["unit"] == "an hour"
    assert pace_plots(idle) == []
    assert in_words(idle) == "No work waited."
    assert pace_plots(POINTS[:1])
