"""A catalogue whose markets are known, crawled as the pipeline would, and how near to the truth a clustering of it comes."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import islice

from penstock_systems.appstore.cluster.arrangement import arranged
from penstock_systems.appstore.cluster.baselines import by_genre, by_overlap
from penstock_systems.appstore.cluster.crawled import NOT_KNOWN, Crawled, KeywordFacts, Places, Registry
from penstock_systems.appstore.cluster.markets import laid_out
from penstock_systems.appstore.keywords import discovered
from penstock_systems.standins.appstore import Catalogue
from penstock_systems.standins.appstore.genres import APP_STORE
from penstock_systems.standins.appstore.search import Search
from penstock_systems.standins.appstore.stars import average

CHART = 200  # apps of the chart that the crawl begins with
RESULTS = 25  # of one search
DAY = 30


@dataclass(frozen=True, slots=True)
class Known:
    """What was crawled, and the planted market of each app in it; None for one that belongs to none."""

    crawled: Crawled
    truth: dict[int, int | None]


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
    planted = {catalogue.track_id(index): catalogue.place(index)[0] for index in found}
    truth = {track_id: market.number if market.planted else None for track_id, market in planted.items()}
    return Known(Crawled(places, registry, KeywordFacts()), truth)


def _registry(catalogue: Catalogue, indexes: Sequence[int]) -> Registry:
    registry = Registry()
    for index in indexes:
        app = catalogue.app(index)
        registry.track_id.append(app.track_id)
        registry.ratings.append(app.rating_count(DAY))
        registry.stars.append(average(app.histogram(DAY)))
        registry.velocity.append(NOT_KNOWN)
        registry.score.append(NOT_KNOWN)
        registry.developer.append(catalogue.artist_id(app.developer))
        registry.genre.append(app.genres[0])
        registry.priority.append(0)
    return registry


@dataclass(frozen=True, slots=True)
class Judged:
    """How near the truth each way comes, from 0 to 1, over the planted apps that were placed in a market."""

    seed: int
    keywords: int
    planted: int  # markets
    found: int
    ours: float
    overlap: float
    genre: float
    placed: float  # the share of the planted apps that rank for anything


def judged(seed: int, *, apps: int, markets: int, keywords: int) -> Judged:
    known = crawl(seed, apps=apps, markets=markets, keywords=keywords)
    given = arranged(known.crawled)
    truth = [known.truth[track_id] for track_id in given.track_ids.tolist()]
    planted = [at for at, market in enumerate(truth) if market is not None]
    ours = laid_out(given.rankings).app.tolist()
    placed = [at for at in planted if ours[at] >= 0]

    def agreement(found: Sequence[int]) -> float:
        return v_measure([truth[at] for at in placed], [found[at] for at in placed])

    return Judged(
        seed=seed,
        keywords=given.rankings.keywords,
        planted=markets,
        found=len(set(ours) - {-1}),
        ours=agreement(ours),
        overlap=agreement(by_overlap(given.rankings).tolist()),
        genre=agreement(by_genre(given.rankings).tolist()),
        placed=len(placed) / len(planted),
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
