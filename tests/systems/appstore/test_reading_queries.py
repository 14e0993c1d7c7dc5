"""Readings: what each finds, in which order, on both stores, and by which index."""

from __future__ import annotations

import re
from typing import Any

import apsw
import psycopg
import pytest

from penstock.commands import find, reading
from penstock_systems.appstore import app as shared
from penstock_systems.appstore.reading import answers
from penstock_systems.appstore.reading.queries import SQL
from tests.systems.appstore import market_rows
from tests.systems.appstore.conftest import Opened
from tests.systems.appstore.markets import market

__all__ = ["market"]

PARAMETER = re.compile(r"(?<!:):([a-z_]+)")
READINGS = {name: sql for name, sql in SQL.items() if sql.startswith("select")}

# What a reading may go through whole: some hundreds of markets, charts of 200 places, what people keep, the ledger of calls,
# ten examples of how to market something.
SMALL = re.compile(
    r"SCAN (near|seen|place|tracked|market_clusters|shared_reports|cluster_relations|penstock_calls|member)\b"
    r"|SCAN (developers|example)\b"
    r"|SCAN \(subquery"
)
# Counting takes one step an entry, but of an index that has all it needs.
COUNTED = re.compile(r"SCAN app_registry USING COVERING INDEX")
# In the order of the index: what is not shown is not read.
IN_ORDER = (
    "apps_by_ratings",
    "apps_by_velocity",
    "apps_by_competitiveness",
    "apps_by_newest",
    "apps_of_genre",
    "keywords_by_demand",
    "keywords_of_status",
    "clusters",
    "opportunities",
    "rising_apps",
)


async def names(by: str, **wanted: Any) -> list[int]:
    return [row["track_id"] for row in await answers.apps(shared.db, by=by, most=5, **wanted)]


async def test_apps_come_in_each_order_and_from_each_direction(pipeline: Opened) -> None:
    async with pipeline() as it:
        await market_rows.fill(shared.app)

        assert await names("ratings") == [103_000, 101_000, 104_000, 107_000, 102_000]
        assert await names("velocity") == [103_000, 101_000, 104_000, 107_000, 102_000]
        assert await names("competitiveness") == [103_000, 107_000, 103_001, 105_000, 107_001]
        assert await names("newest") == [900_000, 900_001, 900_002, 900_003, 900_004]
        assert await names("ratings", genre="Lifestyle") == [104_000, 102_000, 106_000, 108_000, 104_001]
        assert await names("ratings", market=102) == [102_000, 102_001, 102_002, 102_003, 102_004]
        assert await names("ratings", keyword="plant identifier") == [102_002, 102_003, 102_004, 102_005, 102_006]
        assert await names("ratings", developer=1_021) == [102_001, 102_005, 102_009]
        assert await names("ratings", genre="No Such") == []
        assert [row.rank for row in await it.sql(SQL["apps_of_keyword"], keyword="birdsong", most=9)] == [1, 2, 3, 4, 5]


async def test_a_title_is_read_as_it_was_stored_whatever_is_in_it(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)

        read = {row["track_name"] for row in await answers.apps(shared.db, market=101, most=20)}

    assert read >= set(market_rows.HOSTILE)


async def test_one_app_and_one_keyword_are_reported_in_depth(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)
        app = await answers.app(shared.db, 101_001)
        keyword = await answers.keyword(shared.db, "plant care")

        assert app is not None
        assert keyword is not None
        assert [(each["keyword"], each["rank"]) for each in app["keywords"]] == [
            ("daily habits", 1),
            ("habit tracker", 2),
        ]
        assert app["charts"][0]["category_name"] == "Health & Fitness"
        assert app["similar_apps"] == [101_000, 101_001, 101_002]
        assert [each["rating"] for each in app["reviews"]] == [1, 3, 5]
        assert [each["day"] for each in app["days"]] == list(reversed(market_rows.DAYS))
        assert [each["version"] for each in app["versions"]] == ["1.2", "1.1", "1.0"]
        assert [each["id"] for each in app["markets"]] == [101]
        assert [each["track_id"] for each in keyword["ranked"]][:2] == [102_000, 102_001]
        assert [each["name"] for each in keyword["markets"]] == ["plant care"]
        assert await answers.app(shared.db, 5) is None
        assert await answers.keyword(shared.db, "no such") is None


async def test_keywords_come_by_demand_or_by_what_they_belong_to(pipeline: Opened) -> None:
    async def words(**wanted: Any) -> list[str]:
        return [row["keyword"] for row in await answers.keywords(shared.db, most=3, **wanted)]

    async with pipeline() as it:
        await market_rows.fill(shared.app)

        assert await words() == ["budget planner", "habit tracker", "expense tracker"]
        assert await words(status="pending") == ["عادات", "=2+5"]
        assert await words(market=106) == ["dog training", "puppy clicker"]
        assert await words(app=106_003) == ["puppy clicker", "dog training"]
        assert await words(tracked=True) == []
        assert len(await it.sql(SQL["keywords_by_demand"], most=100)) == 24


async def test_markets_come_by_score_with_what_moved_and_those_that_ended_do_not(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)

        found = await answers.clusters(shared.db)
        recent = await answers.clusters(shared.db, days=1)
        market = await answers.cluster(shared.db, 101)

        assert [each["id"] for each in found] == [101, 102, 106, 104, 103, 107, 108, 105, 190]
        assert [round(each["change"], 2) for each in found[:3]] == [-20.0, 20.0, 0.0]
        assert found[-1]["change"] is None
        assert round(recent[1]["change"], 2) == 2.35  # since half past five of the day before
        assert market is not None
        assert [each["id"] for each in market["neighbours"]] == [107, 103, 104]
        assert [each["snapshot_at"] for each in market["history"]][:2] == ["2026-01-06 12:00:00", "2026-01-06 06:00:00"]
        assert market["evaluation"]["verdict"] == "build"
        assert [each["agent"] for each in market["findings"]] == ["demand", "fragmentation"]
        assert await answers.cluster(shared.db, 1) is None


@pytest.mark.spec("B8-T22", "B8-T23", "B8-T27")
async def test_an_opportunity_is_the_newest_evaluation_of_its_market(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)

        found = await answers.opportunities(shared.db)
        by_market = await answers.opportunity(shared.db, "106")
        earlier = await answers.opportunity(shared.db, "evaluation-106-earlier")

        # The earlier ones have higher scores, and do not count.
        assert [each["id"] for each in found] == [f"evaluation-{id}" for id in (101, 102, 106, 103)]
        assert [each["verdict"] for each in found] == ["build", "build", "explore", "avoid"]
        assert [each["role"] for each in found[0]["reference_apps"]] == ["leader", "challenger", "newcomer", "newcomer"]
        assert len(found[0]["tips"]) == 2
        assert by_market is not None
        assert by_market["id"] == "evaluation-106"
        assert by_market["facts"] == {"demand": 52, "apps": 6}
        assert [each["agent"] for each in by_market["debates"][0]["messages"]] == ["advocate", "sceptic"]
        assert [each["name"] for each in by_market["methods"]] == ["Store search", "Short videos", "Communities"]
        assert len(by_market["evaluations"]) == 2
        assert earlier is not None
        assert earlier["verdict"] == "explore"
        assert await answers.opportunity(shared.db, "no such") is None
        assert await answers.opportunity(shared.db, "9" * 30) is None


@pytest.mark.spec("B8-T08", "B8-T19")
async def test_what_moved_is_reckoned_from_the_newest_moment_in_the_data(pipeline: Opened) -> None:
    async with pipeline():
        await market_rows.fill(shared.app)

        moved = await answers.trends(shared.db, most=3)

        assert moved["since"] == "2025-12-30 17:30:00"  # though the app's own clock says something else
        assert [each["track_id"] for each in moved["rising_apps"]] == [103_000, 101_000, 104_000]
        assert [(each["rank"], each["was"]) for each in moved["climbers"]] == [(1, 16), (2, 17), (3, 18)]
        assert [each["id"] for each in moved["rising_clusters"]] == [102, 105, 108]


async def test_an_empty_database_is_read_without_complaint(pipeline: Opened) -> None:
    async with pipeline():
        assert await answers.apps(shared.db) == []
        assert await answers.opportunities(shared.db) == []
        assert (await answers.trends(shared.db))["since"] == ""
        assert await answers.newest(shared.db) is None


async def test_a_count_is_kept_or_counted(market: str) -> None:
    with reading(find(None, market)) as looked:
        assert await looked.count("app_registry") == 102
        assert await looked.count("developers") == 32


# -- plans ----------------------------------------------------------------------------------------------------------


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("A8-15")
def test_on_sqlite_every_reading_has_an_index_and_a_limit(market: str) -> None:
    connection = apsw.Connection(market)
    for name, sql in READINGS.items():
        given = dict.fromkeys(PARAMETER.findall(sql))
        steps = [str(step[-1]) for step in connection.execute(f"explain query plan {sql}", given or ())]

        walked = [step for step in steps if step.startswith("SCAN") and not SMALL.match(step) and "SEARCH" not in step]
        walked = [
            step for step in walked if not COUNTED.match(step) and not (name in IN_ORDER and "USING INDEX" in step)
        ]
        assert not walked, f"{name}: {walked}"
        assert not [step for step in steps if "AUTOMATIC" in step], f"{name}: {steps}"
        assert not (name in IN_ORDER and any("TEMP B-TREE" in step for step in steps)), f"{name}: {steps}"
        assert sql.startswith("select count(") or re.search(r"\blimit (:most|1)$", sql) or name in ("newest", "oldest")
    connection.close()


@pytest.mark.only_on("postgres")
@pytest.mark.spec("A8-15")
def test_on_postgresql_every_list_comes_in_the_order_of_an_index(market: str) -> None:
    with psycopg.connect(market) as connection:
        connection.execute("set enable_seqscan = off")  # what would be cheaper on a table of a hundred rows
        connection.execute("set enable_bitmapscan = off")
        for name in IN_ORDER:
            given = {"most": 20, "genre": "Lifestyle", "status": "pending", "since": ""}
            text = PARAMETER.sub(r"%(\1)s", SQL[name].replace("%", "%%"))
            plan = "\n".join(str(row[0]) for row in connection.execute(f"explain (costs off) {text}".encode(), given))

            assert "Index" in plan, f"{name}: {plan}"
            assert "Seq Scan" not in plan, f"{name}: {plan}"
            outermost = plan.split("SubPlan")[0]
            assert "Sort" not in outermost.replace("Sort Key", ""), f"{name}: {plan}"
