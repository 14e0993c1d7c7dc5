"""Which planted niches are in the list of opportunities, as the pipeline itself ranks them.

What was crawled is put into the tables of an empty database, as if searches and pages had brought it. From there on it is the
pipeline, in virtual time: its clustering task, the agents that its events call, the choice of twenty markets, the research
on each by the offline rules, and at the end the list that `penstock appstore opportunities` prints. No crawl and no page is
asked for meanwhile, so nothing is known of how fast apps gain ratings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from bench.clusters_truth import DAY, Known, Planted, planted
from penstock.testing import TestApp, run
from penstock_systems.appstore import stages
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.cluster import task
from penstock_systems.appstore.crawl.rankings import CHANGED_AT
from penstock_systems.appstore.opportunity.choosing import TOP
from penstock_systems.appstore.reading import answers
from penstock_systems.appstore.sentiment import sentiment
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.standins.appstore import FIRST_DAY, App
from penstock_systems.standins.appstore.genres import genre_name, price_text
from penstock_systems.standins.appstore.reviews import newest
from penstock_systems.standins.appstore.stars import average

REVIEWS = 50  # of an app: the page of reviews that enrichment reads
ROWS_A_UNIT = 5_000
COUNTRY = "us"
HALF = 0.5
UNDER_WAY = "select count(*) from research_tasks where status in ('waiting', 'running')"
MEMBERS = "select track_id from cluster_apps where cluster_id = :id order by track_id limit 10000"

assert stages.app is app


@dataclass(frozen=True, slots=True)
class Listed:
    """A market of the list, the best first."""

    name: str
    score: float
    apps: frozenset[int]


@dataclass(frozen=True, slots=True)
class Found:
    """`share` of the niches are in the list; `early` of them in as many first places as there are niches."""

    listed: list[Listed]
    named: list[str]  # what each market of the list is, by the truth
    niches: int
    share: float
    early: float


def niches(known: Known) -> Found:
    listed: list[Listed] = []

    async def listing() -> None:
        listed.extend(await opportunities(known))

    run(listing, seed=known.catalogue.seed)
    return judged(listed, planted(known))


def judged(listed: Sequence[Listed], truth: Planted) -> Found:
    named = [told(market, truth) for market in listed]
    first = set(named[: len(truth.niches)])
    count = max(1, len(truth.niches))
    return Found(
        listed=list(listed),
        named=named,
        niches=len(truth.niches),
        share=sum(niche in named for niche in truth.niches) / count,
        early=sum(niche in first for niche in truth.niches) / count,
    )


def told(market: Listed, truth: Planted) -> str:
    """The planted market that most of its apps are of, if it also holds half of that market's apps; nothing otherwise."""
    inside = Counter(truth.market_of.get(each, "") for each in sorted(market.apps))
    name, count = inside.most_common(1)[0] if inside else ("", 0)
    planted_there = sum(each == name for each in truth.market_of.values())
    return name if name and count >= HALF * planted_there else ""


async def opportunities(known: Known) -> list[Listed]:
    """Clusters, evaluates and ranks, and reads the list."""
    start = FIRST_DAY + timedelta(days=DAY)
    async with TestApp(app, seed=known.catalogue.seed, start=start) as running:
        for name in app.crons.tasks:
            await app.crons.pause(name)
        for name in app.controllers.names():
            await app.controllers.operate(name, "stop")
        for table, rows in _tables(known, f"{start:%Y-%m-%d %H:%M:%S}").items():
            for at in range(0, len(rows), ROWS_A_UNIT):
                async with running.unit():
                    db.insert_many(table, rows[at : at + ROWS_A_UNIT])
        await running.advance(seconds=1)
        await app.crons.trigger(task.NAME)
        await running.drain()
        while await db.value(UNDER_WAY):
            await running.advance(seconds=60)
        found = await answers.opportunities(db, most=TOP)
        return [
            Listed(each["name"], each["score"], frozenset(await db.column(MEMBERS, id=each["cluster_id"])))
            for each in found
        ]


def _tables(known: Known, now: str) -> dict[str, Sequence[Mapping[str, object]]]:
    places, catalogue = known.crawled.places, known.catalogue
    apps = [
        catalogue.app(index) for id in known.crawled.registry.track_id if (index := catalogue.index(id)) is not None
    ]
    keywords = [
        {"keyword": each, "source": "bench", "status": "searched", "created_at": now} for each in places.keywords
    ]
    columns = zip(places.keyword, places.track_id, places.rank, strict=True)
    rankings = [
        {"keyword": places.keywords[keyword], "track_id": id, "rank": rank, "crawled_at": now}
        for keyword, id, rank in columns
    ]
    return {
        "app_registry": [_app(known, each, now) for each in apps],
        "app_reviews": list(_reviews(known, apps, now)),
        "crawl_keywords": keywords,
        "crawl_rankings": rankings,
        "crawl_state": [{"name": CHANGED_AT, "value": now, "updated_at": now}],
    }


def _app(known: Known, each: App, now: str) -> dict[str, object]:
    histogram = each.histogram(DAY)
    return {
        "track_id": each.track_id,
        "track_name": cleaned(each.title) or "Unknown",
        "seller_name": each.seller,
        "rating_count": sum(histogram),
        "average_rating": average(histogram),
        "primary_genre": genre_name(each.genres[0]),
        "price": each.price,
        "formatted_price": price_text(each.price, COUNTRY, "Free"),
        "developer_id": known.catalogue.artist_id(each.developer),
        "enrichment_source": "scraper",
        "enriched_at": now,
        "first_seen_at": now,
        "last_seen_at": now,
    }


def _reviews(known: Known, apps: Iterable[App], now: str) -> Iterable[dict[str, Any]]:
    moment = FIRST_DAY + timedelta(days=DAY)
    for each in apps:
        for review in newest(known.catalogue, each, moment, COUNTRY, 0, REVIEWS):
            yield {
                "review_id": f"{each.track_id} {review.id}",
                "track_id": each.track_id,
                "rating": review.stars,
                "title": cleaned(review.title),
                "body": cleaned(review.body),
                "sentiment": sentiment(review.title, review.body, review.stars),
                "reviewed_at": f"{review.updated:%Y-%m-%d %H:%M:%S}",
                "seen_at": now,
            }
