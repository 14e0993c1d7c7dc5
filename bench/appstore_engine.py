"""The pipeline as it runs, in real time over real HTTP: enriches the apps it is given, round after round.

    python -m bench.appstore_engine FOLDER '{"url": "http://127.0.0.1:8788", "ids": [1, 2], "developers": [3]}'

Commands come as lines of JSON on stdin. A `round` forgets what was learnt about the apps, wakes the controller, which
enriches them all, and is answered with the seconds until the last commit. `warm` lets the paces rise first, which takes a
minute or two. All stages are on, and nothing is due by the clock.
"""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import penstock as ps
from bench.appstore_fill import FILE
from bench.appstore_process import given, tell
from penstock.cli.worker import GARBAGE_THRESHOLD
from penstock_systems.appstore.app import app, db, html_cache, settings, web
from penstock_systems.appstore.enrich.controller import NAME, PARALLEL
from penstock_systems.appstore.outside import feeding, store
from penstock_systems.appstore.stages import app as staged

assert staged is app

POLL_SECONDS = 0.01  # at least
POLLS = 0.05  # of the time that the rest takes at this rate: looking costs processor time too
PAUSE_SECONDS = 1.0  # in which what the last round left has ended
ROUND_SECONDS_MAX = 300.0
RATE_MAX = 10_000.0  # apps a second: what holds it back is to be the work
WARM_ROUNDS_MAX = 30
STILL_RISING, SETTLED_ROUNDS = 1.05, 3  # times the best before; the last rounds are all below that
FEED_RATE_ENOUGH = 200.0  # reviews a second

FORGET = (
    """
update app_registry
set enriched_at = null, enrichment_source = null, next_enrich_at = null, enrich_attempts = 0, iap_scraped_at = null,
  similar_apps = null, rating_histogram = null, competitiveness_score = null
""",
    "delete from app_reviews",
    "delete from app_version_history",
    "delete from app_keyword_mentions",
    "delete from agent_ledger",
)
LEFT = "select count(*) from app_registry where enriched_at is null and next_enrich_at is null"
WHOLE = """
select count(*)
from app_registry
where enrichment_source = 'scraper'
and rating_histogram is not null
and iap_scraped_at is not null
"""


async def begin(url: str, ids: list[int], developers: list[int]) -> None:
    """The store is where the stand-in is, the crons stand still, and nothing is known but these ids."""
    app.database = FILE
    for host in (settings.bases.itunes, settings.bases.search, settings.bases.apps):
        web.forward(host, url)
    await app._opened()
    for name in app.crons.tasks:
        await app.crons.pause(name)
    now = await db.now()
    async with app.unit():
        db.insert_many("app_registry", [{"track_id": each, "first_seen_at": now, "last_seen_at": now} for each in ids])
        # Their portfolios count as known, or every developer would cost a look-up more than the bare loop makes.
        met = [{"developer_id": each, "portfolio_at": now, "first_seen_at": now} for each in developers]
        db.insert_many("developers", met)


async def enrich_all(ids: list[int]) -> dict[str, Any]:
    await asyncio.sleep(PAUSE_SECONDS)
    shutil.rmtree(Path(html_cache.path), ignore_errors=True)
    async with app.unit():
        for statement in FORGET:
            db.write(statement)
    began, worked = time.perf_counter(), time.process_time()
    await app.controllers.operate(NAME, "wake")
    while left := await db.value(LEFT):
        passed = time.perf_counter() - began
        assert passed < ROUND_SECONDS_MAX, "the apps were not enriched in time"
        await asyncio.sleep(max(POLL_SECONDS, POLLS * passed * left / max(1, len(ids) - left)))
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - worked
    whole, known = await db.value(WHOLE), await db.count("app_registry")
    assert whole == known == len(ids), f"{whole} of {len(ids)} apps are whole, and {known} are known"
    allowed = (await app.controllers.status(NAME))["rate_per_second"]
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "allowed": allowed,
        "reviews": await db.count("app_reviews"),
    }


async def warm(ids: list[int]) -> dict[str, Any]:
    """Until the pace is not what holds it back. Reviews are asked for beside it: theirs is a pace of its own."""
    await app.controllers.operate(NAME, "tune", rate=RATE_MAX)
    asking = asyncio.ensure_future(_ask_for_reviews(ids))
    rates = [0.0]
    for _ in range(WARM_ROUNDS_MAX):
        found = await enrich_all(ids)
        rates.append(len(ids) / found["seconds"])
        if len(rates) > SETTLED_ROUNDS and max(rates[-SETTLED_ROUNDS:]) < STILL_RISING * max(rates[:-SETTLED_ROUNDS]):
            break
    await asking
    return {"rounds": len(rates) - 1, "allowed": found["allowed"], "feed": feeding.rate_per_second}


async def _ask_for_reviews(ids: list[int]) -> None:
    async def ask(some: list[int]) -> None:
        for track_id in some:
            if (feeding.rate_per_second or 0.0) >= FEED_RATE_ENOUGH:
                return
            try:
                await store.reviews(track_id)
            except ps.PenstockError:
                pass  # an app without any, or one that has to wait: the pace has learnt from it

    for _ in range(WARM_ROUNDS_MAX):
        await asyncio.gather(*(ask(ids[start::PARALLEL]) for start in range(PARALLEL)))


async def serve(url: str, ids: list[int], developers: list[int]) -> None:
    await begin(url, ids, developers)
    running = asyncio.ensure_future(app.run())
    loop = asyncio.get_running_loop()
    tell({"parallel": PARALLEL})
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        match json.loads(line)["do"]:
            case "warm":
                tell(await warm(ids))
            case "round":
                tell(await enrich_all(ids))
    app.stop()
    await running


def main() -> None:
    options = given()
    gc.set_threshold(GARBAGE_THRESHOLD)  # as a worker process of `penstock run` sets itself up
    asyncio.run(serve(options["url"], options["ids"], options["developers"]))


if __name__ == "__main__":
    main()
