"""The daily count of ratings: which apps are asked for, in what portions, and what a refusal leaves for tomorrow."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

import penstock as ps
from penstock_systems.appstore import outside
from penstock_systems.appstore.daily import recounting
from penstock_systems.appstore.store.facts import Found
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import crawling, day, found, insert, insert_apps, leap, write

THEN = "2025-12-01 00:00:00"


class LookUps:
    """Finds every app, and notes each look-up. After `refuse_after` look-ups it refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[list[int]] = []
        self.refuse_after = 99
        self.refusal: Exception = ps.Throttled("slow down")
        self.unreadable: set[int] = set()
        monkeypatch.setattr(outside.store, "lookup_many", self.lookup_many)

    async def lookup_many(self, ids: Sequence[int]) -> dict[int, Found]:
        self.asked.append(list(ids))
        if len(self.asked) > self.refuse_after:
            raise self.refusal
        if self.unreadable & set(ids):
            raise ps.Unparsable("The answer to a look-up cannot be read.", reason="bad_json")
        return {id: found(id, ratings=1_000 + id) for id in ids}

    @property
    def ids(self) -> list[int]:
        return [id for ids in self.asked for id in ids]


async def market(it: Pipeline, id: int, score: float | None, apps: Sequence[int], *, ended: str | None = None) -> None:
    row = {"id": id, "lineage_id": id, "name": str(id), "opportunity_score": score, "ended_at": ended}
    await insert(it, "market_clusters", row | {"first_seen_at": THEN, "computed_at": THEN})
    await insert_apps(it, *({"track_id": app, "last_seen_at": THEN} for app in apps))
    await insert(it, "cluster_apps", *({"cluster_id": id, "track_id": app, "weight": 1.0} for app in apps))


async def test_apps_of_living_markets_with_a_score_are_counted_the_best_market_first(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = LookUps(monkeypatch)
        await market(it, 1, 40.0, [11, 12])
        await market(it, 2, 90.0, [22, 21])
        await market(it, 3, None, [31])
        await market(it, 4, 95.0, [41], ended=THEN)
        await market(it, 5, 0.0, [51])

        ratings = (await day(it))["ratings"]

        assert ratings == {"apps": 5, "found": 5, "status": "done"}
        assert store.asked == [[21, 22, 11, 12, 51]]
        rows = await it.sql("select track_id, rating_count from app_registry where rating_count > 0 order by track_id")
        assert rows == [(id, 1_000 + id) for id in (11, 12, 21, 22, 51)]


async def test_an_app_that_was_seen_in_the_last_twelve_hours_is_not_asked_for(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = LookUps(monkeypatch)
        await market(it, 1, 40.0, [11, 12, 13])
        for app, hours in [(11, 11.9), (12, 12.1), (13, 0.0)]:
            seen = (it.running.now - timedelta(hours=hours)).strftime("%Y-%m-%d %H:%M:%S")
            await write(it, "update app_registry set last_seen_at = :seen where track_id = :app", seen=seen, app=app)

        assert (await day(it))["ratings"] == {"apps": 1, "found": 1, "status": "done"}

        assert store.asked == [[12]]


@pytest.mark.parametrize("refusal", [ps.Throttled("slow down"), ps.Unavailable("closed")])
async def test_a_refusal_ends_the_count_of_a_day_and_keeps_what_was_counted(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch, refusal: Exception
) -> None:
    ids = list(range(1, 451))
    async with crawling(pipeline) as it:
        store = LookUps(monkeypatch)
        store.refuse_after, store.refusal = 1, refusal
        await market(it, 1, 40.0, ids)

        assert (await day(it))["ratings"] == {"apps": 450, "found": 200, "refused": True, "status": "done"}
        assert store.asked == [ids[:200], ids[200:400]]
        [counted] = await it.sql("select count(*) as apps from app_registry where rating_count > 0")
        assert counted.apps == 200
        store.refuse_after = 99
        await leap(it, days=1)
        assert (await day(it))["ratings"] == {"apps": 450, "found": 450, "status": "done"}
        assert store.asked[2:] == [ids[:200], ids[200:400], ids[400:]]


async def test_of_more_apps_than_a_day_allows_those_of_the_best_markets_are_counted(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with crawling(pipeline) as it:
        store = LookUps(monkeypatch)
        await market(it, 1, 80.0, [11, 12, 13])
        await market(it, 2, 70.0, [21, 22])
        await market(it, 3, 60.0, [31])

        for apps, markets, asked in [(4, 9, [11, 12, 13, 21]), (3, 9, [11, 12, 13]), (9, 2, [11, 12, 13, 21, 22])]:
            monkeypatch.setattr(recounting, "APPS_MAX", apps)
            monkeypatch.setattr(recounting, "MARKETS_MAX", markets)
            await day(it)
            assert store.ids == asked
            store.asked.clear()
            await leap(it, days=1)


async def test_an_answer_that_cannot_be_read_leaves_its_apps_for_tomorrow_and_the_others_are_counted(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recounting, "IDS_A_CALL", 2)
    async with crawling(pipeline) as it:
        store = LookUps(monkeypatch)
        store.unreadable = {12}
        await market(it, 1, 40.0, [11, 12, 13])

        assert (await day(it))["ratings"] == {"apps": 3, "found": 1, "unread": 2, "status": "done"}
        store.unreadable = set()
        await leap(it, days=1)

        assert (await day(it))["ratings"] == {"apps": 3, "found": 3, "status": "done"}
