"""The enrichment at work against the stand-in: what it keeps, what it tells, and how it takes a refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import penstock as ps
from penstock.testing import run
from penstock_systems.appstore import app as shared
from penstock_systems.appstore import moments, outside
from penstock_systems.appstore.enrich import asking, picking, saving
from penstock_systems.appstore.enrich.controller import controllers, enrich
from penstock_systems.appstore.enrich.outbound import Outbound
from penstock_systems.appstore.enrich.parts import Known
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.standins.appstore import Fault, Limit, Manners
from tests.extent import sampled
from tests.systems.appstore.conftest import START, Opened, Pipeline
from tests.systems.appstore.crawling import crawling, insert_apps
from tests.systems.appstore.enriching import enriching, row_of

DAY = 86_400
BEGAN = f"{START:%Y-%m-%d %H:%M:%S}"


def manners(*faults: Fault, **limits: Limit) -> Manners:
    return Manners(limits=dict(limits), latency_seconds={}, faults=faults)


def sold(it: Pipeline, count: int) -> list[int]:
    """Apps that are in the store for years to come, the best known first."""
    catalogue = it.store.catalogue
    there = [index for index in range(catalogue.apps) if catalogue.sold(index, 0, "us")]
    there = [index for index in there if catalogue.sold(index, 1_000, "us")]
    there.sort(key=lambda index: -catalogue.app(index).rating_count(0))
    return [catalogue.track_id(index) for index in there[:count]]


def unsold(it: Pipeline) -> int:
    catalogue = it.store.catalogue
    return next(catalogue.track_id(i) for i in range(catalogue.apps) if not catalogue.sold(i, 0, "us"))


def told(it: Pipeline) -> Counter[int]:
    """How many events named each app. One that is delivered again after a death is the same event."""
    events = {each.id: each.payload for each in it.running.delivered(shared.events)}
    return Counter(
        track_id for event in events.values() if isinstance(event, shared.AppEnriched) for track_id in event.track_ids
    )


def asked(it: Pipeline, endpoint: str) -> int:
    return it.store.truth().books[endpoint].requests


@pytest.mark.spec("B3-05", "A9-03")
async def test_an_app_is_known_as_the_store_shows_it(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        [track_id] = sold(it, 1)
        await enrich(track_id)

        app = it.store.catalogue.app(it.store.catalogue.index(track_id) or 0)
        row = await row_of(it, track_id)
        assert (row.track_name, row.enrichment_source) == (cleaned(app.title), "scraper")
        assert row.subtitle == cleaned(app.subtitle)
        assert row.rating_count == app.rating_count(0)
        assert json.loads(row.rating_histogram) == app.histogram(0)[::-1]
        assert [each["name"] for each in json.loads(row.in_app_purchases or "[]")] == [
            name for name, _ in app.purchases
        ]
        assert await shared.html_cache.get(f"app/{track_id}/page.html")
        assert await it.sql("select review_id from app_reviews where track_id = :id", id=track_id)


@pytest.mark.spec("B3-08", "A9-03", "A9-04", "G2-34")
async def test_a_retry_reads_the_page_that_is_kept_and_a_refresh_fetches_a_new_one(pipeline: Opened) -> None:
    failing = manners(Fault("error", "lookup", requests=(1, 1)))
    async with crawling(pipeline, manners=failing) as it:
        [track_id] = sold(it, 1)
        verdict = await enrich(track_id)
        assert (verdict.source, verdict.attempts) == ("scraper", 1)
        assert (await row_of(it, track_id)).developer_id is None

        await it.running.advance(minutes=10)
        await enrich(track_id)
        assert asked(it, "page") == 1
        assert (await row_of(it, track_id)).developer_id is not None

        it.running.jump(15 * DAY)
        await enrich(track_id)
        assert asked(it, "page") == 2


@pytest.mark.spec("B3-08", "A9-04")
async def test_a_refresh_fetches_a_page_that_the_cache_holds_since_an_hour(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        [track_id] = sold(it, 1)
        await enrich(track_id)
        it.running.jump(15 * DAY)
        await outside.store.page(track_id)
        await it.running.advance(hours=1)
        assert asked(it, "page") == 2

        await enrich(track_id)

        assert asked(it, "page") == 3


@pytest.mark.spec("A9-05", "G2-34", "B3-06")
async def test_a_page_that_cannot_be_read_is_put_aside_and_fetched_again(pipeline: Opened) -> None:
    async with crawling(pipeline, manners=manners(Fault("truncated", "page", requests=(1, 1)))) as it:
        [track_id] = sold(it, 1)
        await enrich(track_id)
        row = await row_of(it, track_id)
        assert (row.enrichment_source, row.enrich_attempts, row.iap_scraped_at) == ("itunes", 1, None)
        assert row.enrich_error.startswith("page unreadable")
        assert row.next_enrich_at == moments.after(BEGAN, seconds=300)
        assert await shared.html_cache.get(f"debug/app/{track_id}/page.html")

        assert (await enrich(track_id)).source == "scraper"
        assert (await row_of(it, track_id)).enrich_error is None


@pytest.mark.spec("B3-06", "B3-07", "A6-26", "B3-11")
async def test_a_refused_page_costs_neither_what_the_look_up_said_nor_an_attempt_and_slows_the_controller(
    pipeline: Opened,
) -> None:
    async with enriching(pipeline, apps=8, manners=manners(Fault("busy", "page", requests=(1, 1)))) as it:
        [track_id] = sold(it, 1)
        await insert_apps(it, {"track_id": track_id, "enrich_priority": 1})
        await it.running.advance(seconds=10)

        row = await row_of(it, track_id)
        assert (row.enrichment_source, row.enrich_attempts) == ("itunes", 0)
        assert row.next_enrich_at <= moments.after(row.enriched_at, seconds=120)
        assert row.developer_id is not None
        assert told(it)[track_id] == 1
        status = await controllers["main"].status()
        assert status["total_throttled"] == 1

        await it.running.advance(minutes=15)
        assert (await row_of(it, track_id)).enrichment_source == "scraper"
        assert told(it)[track_id] == 2


@pytest.mark.spec("B3-07", "A6-26", "G2-23", "B3-02")
async def test_an_app_that_is_gone_fails_at_once_with_a_reason_and_is_looked_for_again_after_ninety_days(
    pipeline: Opened,
) -> None:
    async with enriching(pipeline, apps=2_000) as it:
        track_id = unsold(it)
        await insert_apps(it, {"track_id": track_id, "track_name": "Was here"})
        await it.running.advance(minutes=5)

        row = await row_of(it, track_id)
        assert (row.enrichment_source, row.enrich_attempts, row.track_name) == ("failed", 0, "Was here")
        assert "404" in row.enrich_error
        assert row.next_enrich_at == moments.after(row.enriched_at, days=90)
        assert asked(it, "ratings") == 1
        status = await controllers["main"].status()
        assert (status["total_skipped"], status["total_completed"], told(it)) == (1, 0, Counter())

        it.running.jump(91 * DAY)
        await it.running.advance(minutes=3)
        assert asked(it, "ratings") == 2
        assert (await row_of(it, track_id)).next_enrich_at > row.next_enrich_at


@pytest.mark.spec("B3-07", "A6-26", "G5-13")
async def test_an_app_that_keeps_failing_waits_longer_each_time_and_is_given_up_after_the_fifth(
    pipeline: Opened,
) -> None:
    down = manners(Fault("error", "page"), Fault("error", "lookup"))
    async with enriching(pipeline, apps=8, manners=down) as it:
        [track_id] = sold(it, 1)
        await insert_apps(it, {"track_id": track_id})
        seen: list[tuple[int, str | None]] = []
        for _ in range(60):
            await it.running.advance(minutes=3)
            it.running.jump(10 * 60)
            row = await row_of(it, track_id)
            if not seen or seen[-1] != (row.enrich_attempts, row.enrichment_source):
                seen.append((row.enrich_attempts, row.enrichment_source))
        assert seen == [(1, None), (2, None), (3, None), (4, None), (0, "failed")]
        assert asked(it, "page") == 5
        assert row.next_enrich_at == moments.after(row.enriched_at, days=90)
        assert "503" in row.enrich_error or "500" in row.enrich_error or "502" in row.enrich_error


@pytest.mark.spec("B3-01", "B3-11", "G2-14", "B3-10")
async def test_it_works_through_all_it_finds_and_tells_of_each_app_once(pipeline: Opened) -> None:
    async with enriching(pipeline, apps=60) as it:
        await insert_apps(it, *({"track_id": track_id} for track_id in sold(it, 5)))
        await it.running.advance(minutes=10)

        rows = await it.sql("select track_id, enrichment_source, data_source from app_registry")
        enriched = {row.track_id for row in rows if row.enrichment_source == "scraper"}
        assert len(enriched) > 20
        assert {row.enrichment_source for row in rows} <= {"scraper", "failed"}
        assert {row.data_source for row in rows} >= {None, "similar"}
        assert told(it) == Counter(enriched)
        events = [each.payload for each in it.running.delivered(shared.events)]
        assert len(events) < len(enriched)


@pytest.mark.slow("postgres")
def test_the_same_seed_gives_the_same_rows(
    pipeline: Opened, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def rows() -> tuple[list[object], list[object]]:
        faults = manners(Fault("busy", "page", share=0.05), Fault("error", share=0.05))
        async with enriching(pipeline, apps=60, manners=faults) as it:
            await insert_apps(it, *({"track_id": track_id} for track_id in sold(it, 10)))
            await it.running.advance(minutes=4)
            ids = await it.sql("select track_id from app_registry order by track_id")
            reviews = await it.sql("select review_id, sentiment, seen_at from app_reviews order by review_id")
            return [await row_of(it, row.track_id) for row in ids], list(reviews)

    seen = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        seen.append(run(rows, seed=seed))
    assert len(seen[0][0]) > 30
    assert seen[0] == seen[1]


@pytest.mark.spec("B3-11")
@sampled("point", ["commit.before", "commit.after"], every=2)
@pytest.mark.parametrize("nth", [3, 9])
async def test_each_app_is_reported_once_wherever_the_worker_dies(pipeline: Opened, point: str, nth: int) -> None:
    async with enriching(pipeline, apps=40) as it:
        await insert_apps(it, *({"track_id": track_id} for track_id in sold(it, 8)))
        await it.running.crash(at=point, nth=nth)
        await it.running.advance(minutes=20)

        assert it.running.workers_started == 2
        rows = await it.sql("select track_id from app_registry where enrichment_source = 'scraper'")
        assert told(it) == Counter(row.track_id for row in rows)


@pytest.mark.spec("B1-05", "G2-15")
async def test_a_requested_app_comes_before_all_others_and_is_fetched_anew(pipeline: Opened) -> None:
    async with enriching(pipeline, manners=manners(page=Limit(6))) as it:
        wanted, known, *others = sold(it, 60)
        later = moments.after(BEGAN, days=20)
        await insert_apps(
            it,
            {"track_id": known, "enriched_at": BEGAN, "enrichment_source": "scraper", "next_enrich_at": later},
        )
        await insert_apps(
            it,
            *({"track_id": track_id, "rating_count": 10**6} for track_id in others),
        )
        await it.running.advance(minutes=2)
        await it.running.send(shared.wishes, shared.EnrichWanted(track_ids=[wanted, known, wanted, 0, -5]))
        await it.running.advance(minutes=7)

        waiting = await it.sql("select track_id from app_registry where enriched_at is null")
        assert len(waiting) > 20
        for track_id in (wanted, known):
            row = await row_of(it, track_id)
            assert (row.enrichment_source, row.enrich_priority) == ("scraper", 0)
            assert row.enriched_at > BEGAN


async def test_a_wish_wakes_a_controller_that_rests(pipeline: Opened) -> None:
    async with enriching(pipeline) as it:
        [track_id] = sold(it, 1)
        await it.running.advance(hours=1)  # nothing to do: it looks every two minutes
        await it.running.send(shared.wishes, shared.EnrichWanted(track_ids=[track_id]))
        await it.running.advance(seconds=10)
        assert (await row_of(it, track_id)).enrichment_source == "scraper"


@pytest.mark.spec("B3-04", "G5-23")
async def test_no_more_requests_are_under_way_than_the_limit_allows(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Manners(limits={}, latency_seconds={"page": 0.4, "lookup": 0.4, "ratings": 0.4, "chart": 0.4}, faults=())
    async with enriching(pipeline, apps=60, manners=slow) as it:
        narrow = Outbound(5)
        monkeypatch.setattr(asking, "outbound", narrow)
        monkeypatch.setattr(asking.ahead, "_outbound", narrow)
        await insert_apps(it, *({"track_id": track_id} for track_id in sold(it, 40)))
        await it.running.advance(minutes=2)
        assert len(await it.sql("select 1 from app_registry where enrichment_source = 'scraper'")) >= 40
        assert narrow.peak == 5
        assert shared.settings.outbound_max == 32


@pytest.mark.spec("B1-02")
async def test_it_finds_the_pace_of_the_pages_and_stays_below_it(pipeline: Opened) -> None:
    async with enriching(pipeline, apps=300, manners=manners(page=Limit(30, kind="bucket", burst=5))) as it:
        await insert_apps(it, *({"track_id": track_id} for track_id in sold(it, 200)))
        await it.running.advance(minutes=6)
        book = it.store.truth().books["page"]
        assert book.answered > 0.6 * 6 * 30
        assert book.refused < 0.2 * book.requests
        assert not await it.sql("select 1 from app_registry where enrich_attempts > 0")


async def test_an_app_that_we_fail_at_is_charged_and_harms_no_other(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with enriching(pipeline, apps=12) as it:
        bad, *good = sold(it, 4)
        title = cleaned(it.store.catalogue.app(it.store.catalogue.index(bad) or 0).title)

        def broken(said: str | None, *more: str | None) -> object:
            if said == title:
                raise KeyError("ours")
            return []

        monkeypatch.setattr(saving, "mentions", broken)
        await insert_apps(it, *({"track_id": track_id, "rating_count": 10**6} for track_id in (bad, *good)))
        await it.running.advance(minutes=4)
        row = await row_of(it, bad)
        assert (row.enrich_attempts, row.enriched_at, "ours" in row.enrich_error) == (1, None, True)
        assert [(await row_of(it, track_id)).enrichment_source for track_id in good] == ["scraper"] * 3

        for _ in range(6):
            it.running.jump(9 * 3_600)
            await it.running.advance(minutes=20)
        assert (await row_of(it, bad)).enrichment_source == "failed"


@pytest.mark.spec("G2-20", "B3-01")
async def test_it_counts_what_it_started_goes_on_after_a_failed_look_and_keeps_its_figures_while_idle(
    pipeline: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with enriching(pipeline, apps=12) as it:
        waiting = picking.waiting
        failures: list[str] = []

        async def broken(limit: int) -> list[Known]:
            if not failures:
                failures.append("the database is busy")
                raise OSError(failures[0])
            return await waiting(limit)

        monkeypatch.setattr(picking, "waiting", broken)
        await insert_apps(it, *({"track_id": track_id} for track_id in sold(it, 3)))
        await it.running.advance(minutes=12)
        assert failures
        assert not await it.sql("select 1 from app_registry where enrich_attempts > 0")
        done = (await it.sql("select count(*) from app_registry where enriched_at is not null"))[0][0]
        assert done >= 3

        await it.running.restart()  # it was idle: what it counted was saved before
        status = await shared.app.controllers.status("enrichment")
        assert status["total_dispatched"] == status["total_completed"] == done


@pytest.mark.spec("B3-01", "F-36")
async def test_the_controller_is_placed_in_the_east_of_north_america(pipeline: Opened) -> None:
    async with enriching(pipeline) as it:
        await controllers["main"].status()
        rows = await it.sql("select class, name, hint from penstock_objects where class like '%Controller' limit 9")

        assert {tuple(row) for row in rows} == {
            ("Controller", "enrichment", "enam"),
            ("EnrichmentController", "main", "enam"),
        }


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("G5-22")
def test_the_place_of_the_controller_is_a_setting(pipeline: Opened, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('[systems.appstore]\nlocation = "apac"\n')
    script = """
import asyncio
from penstock_systems.appstore.stages import app

async def main():
    async with app:
        await app.controllers.operate("enrichment", "stop")
        print(await app.db.value("select hint from penstock_objects where name = 'enrichment'"))

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (done.stdout, done.returncode) == ("apac\n", 0), done.stderr


@pytest.mark.spec("B3-01", "B1-06", "F-11")
async def test_there_is_one_controller_and_a_second_one_is_refused(pipeline: Opened) -> None:
    async with enriching(pipeline):
        with pytest.raises(ps.PenstockError, match="singleton"):
            controllers["second"]
        with pytest.raises(ps.PenstockError, match="two controllers"):
            shared.app.controller("enrichment")(ps.Controller)
        await controllers.get("main", hint="enam").stop()
        assert (await controllers["main"].status())["running"] is False
        await controllers["main"].start()
        assert (await controllers["main"].status())["running"] is True


@pytest.mark.spec("B3-02", "G2-23")
async def test_what_was_enriched_is_refreshed_after_its_period(pipeline: Opened) -> None:
    async with enriching(pipeline, apps=5, markets=0) as it:
        scraped, looked_up = sold(it, 2)
        for track_id, source, days in ((scraped, "scraper", 30), (looked_up, "itunes", 14)):
            due = moments.after(BEGAN, days=days)
            old = {"enriched_at": BEGAN, "enrichment_source": source, "next_enrich_at": due}
            await insert_apps(it, {"track_id": track_id, **old})
        it.running.jump(13 * DAY)
        await it.running.advance(minutes=3)
        assert [(await row_of(it, each)).enriched_at for each in (scraped, looked_up)] == [BEGAN, BEGAN]
        it.running.jump(2 * DAY)
        await it.running.advance(minutes=3)
        assert (await row_of(it, scraped)).enriched_at == BEGAN
        assert (await row_of(it, looked_up)).enriched_at > BEGAN
        it.running.jump(16 * DAY)
        await it.running.advance(minutes=3)
        assert (await row_of(it, scraped)).enriched_at > BEGAN


@pytest.mark.spec("B3-01", "A5-16")
async def test_the_controller_is_made_with_the_location_of_the_deployment(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await controllers["main"].wake()

        made = await it.sql("select class, hint from penstock_objects where name in ('enrichment', 'main')")

        assert {tuple(row) for row in made} >= {("Controller", "enam"), ("EnrichmentController", "enam")}
