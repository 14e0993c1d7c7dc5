"""A day's facts and what is measured from them: a bounded set, one row a day, and ratings a day."""

from __future__ import annotations

import msgspec
import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore.daily import snapshots, velocity
from penstock_systems.appstore.reading import answers
from tests.systems.appstore.conftest import Opened, Pipeline
from tests.systems.appstore.crawling import (
    THEN,
    analyze,
    crawling,
    day,
    insert,
    insert_apps,
    insert_keywords,
    leap,
    write,
)

SHOTS = "select track_id, day, rating_count, average_rating, rank from app_snapshots order by day, track_id"


@pytest.mark.spec("B7-03", "G2-33")
def test_a_day_takes_at_most_150_000_rows_of_apps_and_5_000_of_keywords() -> None:
    assert (snapshots.BEST_KNOWN, snapshots.OTHERS_MAX, snapshots.TRACKED_MAX) == (50_000, 50_000, 5_000)


@pytest.mark.spec("B7-03")
async def test_each_kind_of_snapshot_stops_at_its_bound(pipeline: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("BEST_KNOWN", "OTHERS_MAX", "TRACKED_MAX"):
        monkeypatch.setattr(snapshots, bound, 2)
    async with crawling(pipeline) as it:
        await insert_apps(it, *({"track_id": n, "rating_count": 100 - n} for n in range(1, 13)))
        await insert(it, "cluster_apps", *({"cluster_id": 1, "track_id": n, "weight": 1} for n in range(4, 9)))
        await insert(it, "app_stars", *({"user_id": "a", "track_id": n, "created_at": THEN} for n in range(9, 13)))
        words = [{"keyword": f"k{n}", "added_by": "a", "created_at": THEN} for n in range(4)]
        await insert(it, "tracked_keywords", *words)

        taken = await snapshots.take_snapshots(await shared.db.now())

        assert (taken["apps"], taken["keywords"]) == (6, 2)
        assert [row.track_id for row in await it.sql(SHOTS)] == [1, 2, 4, 5, 9, 10]


@pytest.mark.spec("B7-03", "G2-33")
async def test_the_best_known_apps_and_the_starred_ones_are_noted_once_a_day(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "BEST_KNOWN", 5)
    monkeypatch.setattr(snapshots, "PAGE", 2)
    async with crawling(pipeline) as it:
        counts = {1: 50, 2: 40, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0, 8: 0, 9: 30}
        await insert_apps(
            it, *({"track_id": n, "rating_count": count, "average_rating": 4.5} for n, count in counts.items())
        )
        await insert(it, "cluster_apps", *({"cluster_id": c, "track_id": 7, "weight": 1} for c in (1, 2, 3)))
        await insert(it, "cluster_apps", {"cluster_id": 1, "track_id": 999, "weight": 1})  # an app that is no more
        await insert(
            it,
            "app_stars",
            *({"user_id": u, "track_id": n, "created_at": THEN} for u, n in (("a", 8), ("b", 8), ("a", 1))),
        )
        await insert(
            it,
            "crawl_rankings",
            *({"keyword": k, "track_id": 2, "rank": r, "crawled_at": THEN} for k, r in (("x", 9), ("y", 4))),
        )

        for _ in range(2):
            await snapshots.take_snapshots(await shared.db.now())

        rows = await it.sql(SHOTS)
        # Five by their ratings (of equals the lower ids), one in a market, one with a star.
        assert [row.track_id for row in rows] == [1, 2, 3, 4, 7, 8, 9]
        assert {row.day for row in rows} == {"2026-01-01"}
        assert tuple(rows[1])[2:] == (40, 4.5, 4)
        assert tuple(rows[0])[4] is None

        await leap(it, days=1)
        assert (await snapshots.take_snapshots(await shared.db.now()))["apps"] == 7
        assert len(await it.sql(SHOTS)) == 14


@pytest.mark.spec("B7-03", "B8-T30", "B8-T32", "B8-T29")
async def test_tracked_keywords_are_noted_with_what_is_known_of_them_and_their_ranks(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_keywords(
            it, {"keyword": "calm", "app_count": 2, "demand": 61.5, "last_searched_at": THEN}, "untracked"
        )
        await insert(
            it, "tracked_keywords", *({"keyword": k, "added_by": "me", "created_at": THEN} for k in ("calm", "睡眠"))
        )
        await insert(
            it, "dfs_keyword_cache", {"keyword": "calm", "response": '{"search_volume":900}', "fetched_at": THEN}
        )
        await insert(it, "dfs_keyword_cache", {"keyword": "睡眠", "response": "broken", "fetched_at": THEN})
        ranks = [("calm", 1, 1), ("calm", 2, 2), ("untracked", 1, 1)]
        await insert(
            it, "crawl_rankings", *({"keyword": k, "track_id": t, "rank": r, "crawled_at": THEN} for k, t, r in ranks)
        )

        for _ in range(2):
            await snapshots.take_snapshots(await shared.db.now())

        noted = {
            row.keyword: msgspec.json.decode(row.metrics)
            for row in await it.sql("select keyword, metrics from keyword_snapshots")
        }
        assert noted == {
            "calm": {"app_count": 2, "demand": 61.5, "priority": 0, "last_searched_at": THEN, "volume": 900},
            "睡眠": {"app_count": None, "demand": None, "priority": None, "last_searched_at": None, "volume": None},
        }
        rows = await it.sql("select keyword, track_id, day, rank from ranking_snapshots order by track_id")
        assert [tuple(row) for row in rows] == [("calm", 1, "2026-01-01", 1), ("calm", 2, "2026-01-01", 2)]
        told = await answers.keyword(shared.db, "calm")
        assert told is not None
        assert [(each["day"], each["rank"], each["track_id"]) for each in told["places"]] == [
            ("2026-01-01", 1, 1),
            ("2026-01-01", 2, 2),
        ]


# -- velocity ---------------------------------------------------------------------------------------------


async def shoot(it: Pipeline, track_id: int, days: dict[str, int], time: str = "06:00:00") -> None:
    rows = [{"track_id": track_id, "day": d, "rating_count": n, "snapshot_at": f"{d} {time}"} for d, n in days.items()]
    await insert(it, "app_snapshots", *rows)


SPEEDS = (
    "select track_id, rating_velocity_7d, rating_count_7d_ago, rating_velocity_updated_at from app_registry"
    " where rating_velocity_updated_at is not null order by track_id"
)
NOW = "2026-01-20 06:00:00"


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B7-04")
@pytest.mark.parametrize(
    "before, current, a_day",
    [
        ((1_000, "2026-01-13 06:00:00"), (1_700, NOW), 100.0),
        ((0, "2026-01-13 06:00:00"), (10, NOW), 1.43),
        ((1_000, "2026-01-10 06:00:00"), (400, NOW), -60.0),
        ((5, "2026-01-20 05:00:00"), (9, NOW), 4.0),
    ],
)
def test_velocity_is_ratings_a_day(before: tuple[int, str], current: tuple[int, str], a_day: float) -> None:
    assert velocity.velocity(velocity.Seen(*before), velocity.Seen(*current)) == a_day


@pytest.mark.spec("B7-04", "G2-32")
async def test_the_baseline_is_the_oldest_snapshot_of_three_to_ten_days_ago(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(velocity, "PAGE", 2)
    monkeypatch.setattr(velocity, "UPDATES_A_BATCH", 1)
    monkeypatch.setattr(velocity, "BATCHES_A_COMMIT", 2)  # five apps are saved in three commits
    async with crawling(pipeline) as it:
        await insert_apps(it, *({"track_id": n} for n in range(1, 9)))
        today = "2026-01-20"
        await shoot(it, 1, {"2026-01-09": 1, "2026-01-13": 1_000, "2026-01-16": 1_300, today: 1_700})
        await shoot(it, 2, {"2026-01-10": 1_000, "2026-01-17": 10, today: 400})
        await shoot(it, 3, {"2026-01-18": 5, today: 50})  # too young
        await shoot(it, 4, {"2026-01-09": 5, today: 50})  # too old
        await shoot(it, 5, {"2026-01-13": 5})  # not of today
        await shoot(it, 6, {"2026-01-17": 70, today: 100})
        await shoot(it, 7, {"2026-01-10": 0, today: 0})
        await shoot(it, 8, {"2026-01-12": 8, "2026-01-11": 9, today: 9})

        counts = await velocity.measure_velocity(NOW)

        assert counts == {"measured": 5, "falling": 1}
        assert [tuple(row) for row in await it.sql(SPEEDS)] == [
            (1, 100.0, 1_000, NOW),
            (2, -60.0, 1_000, NOW),
            (6, 10.0, 70, NOW),
            (7, 0.0, 0, NOW),
            (8, 0.0, 9, NOW),
        ]


@pytest.mark.spec("B7-04", "G2-32", "G2-11")
async def test_velocity_reads_a_snapshot_once_however_many_days_are_kept(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(velocity, "PAGE", 100)
    async with crawling(pipeline) as it:
        await insert_apps(it, *({"track_id": n} for n in range(1, 501)))
        for number in range(1, 21):
            date = f"2026-01-{number:02d}"
            rows = [
                {"track_id": n, "day": date, "rating_count": n * number, "snapshot_at": f"{date} 06:00:00"}
                for n in range(1, 501)
            ]
            await insert(it, "app_snapshots", *rows)
        await analyze()
        engine = await shared.app._opened()
        before, commits = engine.meter.read_by(""), engine.scheduler.saved
        assert (await velocity.measure_velocity(NOW))["measured"] == 500
        assert engine.scheduler.saved - commits <= 5  # the updates are one commit
        read = engine.meter.read_by("") - before
        # Today's and those of ten days ago, with what the estimate adds; all that are kept would be ten thousand.
        assert read <= 5 * 500
        [row] = await it.sql("select rating_velocity_7d from app_registry where track_id = 500")
        assert row[0] == 500.0


@pytest.mark.spec("B7-03", "B7-04")
async def test_ten_days_of_the_daily_run_end_in_a_velocity(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(it, {"track_id": 1, "rating_count": 1_000})
        for _ in range(8):
            parts = await day(it)
            assert parts["velocity"]["status"] == "done"
            await write(
                it,
                "update app_registry set rating_count = rating_count + 100, last_seen_at = :now",
                now=await shared.db.now(),
            )
            await leap(it, days=1)
        [row] = await it.sql("select rating_velocity_7d, rating_count_7d_ago from app_registry")
        assert row.rating_velocity_7d == pytest.approx(100.0, abs=0.05)
        assert row.rating_count_7d_ago == 1_000
