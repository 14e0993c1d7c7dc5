"""A catalogue whose markets are known, crawled as the pipeline would, and how near to the truth a clustering of it comes.

The truth is a file that the stand-in writes, and it is written after the markets were found.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.clusters_baselines import by_genre, by_overlap
from penstock_systems.appstore.cluster.arrangement import arranged
from penstock_systems.appstore.cluster.crawled import NOT_KNOWN, Crawled, KeywordFacts, Places, Registry
from penstock_systems.appstore.cluster.markets import laid_out
from penstock_systems.appstore.keywords import discovered
from penstock_systems.standins.appstore import FIRST_DAY, Catalogue, write_truth
from penstock_systems.standins.appstore.genres import APP_STORE
from penstock_systems.standins.appstore.search import Search
from penstock_systems.standins.appstore.stars import average

CHART = 200  # apps of the chart that the crawl begins with
RESULTS = 25  # of one search
DAY, WATCHED_DAYS = 30, 7


@dataclass(frozen=True, slots=True)
class Known:
    """What was crawled of which catalogue."""

    catalogue: Catalogue
    crawled: Crawled


@dataclass(frozen=True, slots=True)
class Planted:
    """The truth: the market of each app that was planted in one, and which of the markets are niches, and traps."""

    market_of: Mapping[int, str]
    markets: int
    niches: Sequence[str]
    traps: Sequence[str] = ()


def crawl(seed: int, *, apps: int, markets: int, keywords: int) -> Known:
    """From a chart to titles, from titles to keywords, from keywords to more apps."""
    catalogue = Catalogue(apps, markets, seed)
    search = Search(catalogue)
    places, found = Places(), dict[int, None]()
    waiting, seen = deque[str](), set[str]()

    def meet(index: int) -> None:
        if index not in found:
            found[index] = None
            fresh = [word for word in discovered(catalogue.app(index).title) if word not in seen]
            seen.update(fresh)
            waiting.extend(fresh)

    for index in islice(catalogue.popular(APP_STORE), CHART):
        meet(index)
    while waiting and len(places.keywords) < keywords:
        keyword = waiting.popleft()
        results = search.ranked(keyword, DAY, "us")[:RESULTS]
        if results:
            places.keywords.append(keyword)
        for rank, index in enumerate(results, 1):
            places.keyword.append(len(places.keywords) - 1)
            places.track_id.append(catalogue.track_id(index))
            places.rank.append(rank)
            meet(index)
    registry = _registry(catalogue, sorted(found, key=catalogue.track_id))
    return Known(catalogue, Crawled(places, registry, KeywordFacts(), DAY))


def _registry(catalogue: Catalogue, indexes: Sequence[int]) -> Registry:
    registry = Registry()
    for index in indexes:
        app = catalogue.app(index)
        registry.track_id.append(app.track_id)
        registry.ratings.append(app.rating_count(DAY))
        registry.stars.append(average(app.histogram(DAY)))
        registry.velocity.append((app.rating_count(DAY) - app.rating_count(DAY - WATCHED_DAYS)) / WATCHED_DAYS)
        registry.score.append(NOT_KNOWN)
        registry.developer.append(catalogue.artist_id(app.developer))
        registry.genre.append(app.genres[0])
        registry.priority.append(0)
        registry.title.append(app.title)
        registry.released.append(app.released or -1)  # day 0 is unknown
        registry.updated.append((app.version_time(app.versions(DAY) - 1) - FIRST_DAY).days or -1)
        registry.reviews.append(0)
        registry.unhappy.append(0)
    return registry


def planted(known: Known) -> Planted:
    """Read from the file that the stand-in writes, and only of apps that were crawled."""
    with TemporaryDirectory(prefix="penstock-truth-") as folder:
        path = Path(folder, "truth.json")
        write_truth(known.catalogue, path)
        told = msgspec.json.decode(path.read_bytes())
    crawled = set(known.crawled.registry.track_id)
    market_of = {int(id): name for id, name in told["market_of"].items() if int(id) in crawled}
    niches, traps = ([each["name"] for each in told["markets"] if each[kind]] for kind in ("niche", "trap"))
    return Planted(market_of, len(told["markets"]), niches, traps)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How near to the truth, from 0 to 1.

    `whole` is over all planted apps that were crawled: one that is in no market is a market of its own, as it is customary to
    count what a clustering leaves out. `inside` is over those in a market, and `placed` how many that is of all."""

    whole: float
    inside: float
    placed: float


def agreement(truth: Mapping[int, str], found: Mapping[int, int]) -> Agreement:
    """`found` is the market of each app; less than 0, or nothing, for none."""
    inside = [app for app in truth if found.get(app, -1) >= 0]
    whole = [(found[app], 0) if found.get(app, -1) >= 0 else (-1, app) for app in truth]
    return Agreement(
        v_measure(list(truth.values()), whole),
        v_measure([truth[app] for app in inside], [found[app] for app in inside]),
        len(inside) / len(truth),
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """How near the truth each way comes."""

    seed: int
    keywords: int
    planted: int  # markets
    found: int
    ours: Agreement
    overlap: Agreement
    genre: Agreement


def judged(known: Known) -> Judged:
    given = arranged(known.crawled)
    ids = given.track_ids.tolist()
    ours, overlap, genre = (
        dict(zip(ids, each.tolist(), strict=True))
        for each in (laid_out(given.rankings, given.said).app, by_overlap(given.rankings), by_genre(given.rankings))
    )
    truth = planted(known)
    return Judged(
        seed=known.catalogue.seed,
        keywords=given.rankings.keywords,
        planted=truth.markets,
        found=len(set(ours.values()) - {-1}),
        ours=agreement(truth.market_of, ours),
        overlap=agreement(truth.market_of, overlap),
        genre=agreement(truth.market_of, genre),
    )


def v_measure(truth: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """1 if each market found holds apps of one true market, and all of them; the harmonic mean of the two."""
    true, made, both = (_entropy(each) for each in (truth, found, list(zip(truth, found, strict=True))))
    homogeneity = 1.0 if true == 0 else 1 - (both - made) / true
    completeness = 1.0 if made == 0 else 1 - (both - true) / made
    total = homogeneity + completeness
    return 2 * homogeneity * completeness / total if total else 0.0


def _entropy(labels: Sequence[Hashable]) -> float:
    return -math.fsum(count / len(labels) * math.log(count / len(labels)) for count in Counter(labels).values())
