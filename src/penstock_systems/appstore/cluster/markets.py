"""Markets out of what was crawled: graph, communities, members, scores and names. Pure, and busy for a while."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

import numpy as np

from penstock_systems.appstore.cluster.arrangement import Arranged, Longs, arranged
from penstock_systems.appstore.cluster.communities import (
    NONE,
    between,
    cohesion,
    communities,
    resolution_for,
)
from penstock_systems.appstore.cluster.crawled import Crawled, KeywordFacts
from penstock_systems.appstore.cluster.graph import Edges, Floats, Ints, Rankings, neighbours, sums, telling
from penstock_systems.appstore.cluster.joining import joined
from penstock_systems.appstore.cluster.market import Computed, Market
from penstock_systems.appstore.cluster.members import members
from penstock_systems.appstore.cluster.naming import names
from penstock_systems.appstore.cluster.placing import placed
from penstock_systems.appstore.cluster.relations import nearest
from penstock_systems.appstore.cluster.scoring import founders_score, score
from penstock_systems.appstore.cluster.titles import DEVELOPERS_MIN, Said
from penstock_systems.appstore.keywords import discovered, tokens

APPS_MIN = 3  # a market has at least so many apps
WEIGHT_PLACES = 4
TYPICAL = 8  # keywords of a market that the store is asked to complete
RIVALS_MAX = 5_000  # apps of a market that are counted, the most visible first
# Of the ratings of a market: a word in the titles of so many may be a name with an owner; fewer are enough for a word that
# the market is named by.
NAME_SHARE = 0.6
NAMED_SHARE = 0.2
TITLES_MAX, TITLES_MANY = 50, 2  # that tell how much was searched, and that make a keyword more than a name
ScoredBy = Literal["founder", "article"]


def computed(
    crawled: Crawled, *, finer: float = 1.0, scores: ScoredBy = "founder", ratings_decide: float = 1.0
) -> Computed:
    """`finer` is what a deployment multiplies the resolution by, `ratings_decide` what it believes of ratings."""
    given = arranged(crawled)
    layout = laid_out(given.rankings, given.said, finer=finer)
    tied = cohesion(layout.keyword, layout.edges)
    markets = _described(given, layout, tied, scores, ratings_decide)
    near = nearest(between(layout.keyword, layout.edges), _volumes(layout.keyword, layout.edges))
    return Computed(markets, near, given.rankings.keywords, given.rankings.apps, layout.resolution)


@dataclass(frozen=True, slots=True)
class Layout:
    """The market of each keyword and of each app, -1 for none, and how much each app is seen there."""

    keyword: Ints
    app: Ints
    weight: Floats
    edges: Edges
    resolution: float


def laid_out(rankings: Rankings, said: Said, *, finer: float = 1.0) -> Layout:
    told = telling(rankings)
    edges = neighbours(rankings, told)
    resolution = finer * resolution_for(len(np.union1d(edges.a, edges.b)))
    pieces = communities(edges, rankings.keywords, resolution=resolution)
    keyword = joined(rankings, pieces, told)
    # First what searches alone make sure of. By that it is learned what the apps of each market are like.
    keyword, sure = with_enough_apps(keyword, members(rankings, keyword, told)[0])
    belongs, weight = placed(rankings, keyword, told, sure, said)
    keyword, app = with_enough_apps(keyword, belongs)
    return Layout(keyword, app, weight, edges, resolution)


def with_enough_apps(labels: Ints, belongs: Ints) -> tuple[Ints, Ints]:
    """What has hardly any apps is no market. The others are counted anew, in the same order."""
    apps = np.bincount(belongs[belongs != NONE], minlength=int(labels.max(initial=0)) + 1)
    enough = apps >= APPS_MIN
    number = np.where(enough, np.cumsum(enough) - 1, NONE).astype(np.int32)
    counted, placed = (np.where(each == NONE, NONE, number[each]).astype(np.int32) for each in (labels, belongs))
    return counted, placed


def _described(given: Arranged, layout: Layout, tied: Floats, scores: ScoredBy, ratings_decide: float) -> list[Market]:
    size = int(layout.keyword.max(initial=NONE)) + 1
    weight = layout.weight
    common, searched = given.said.common, set(given.keywords)
    inside_of = _grouped(layout.app, weight, size)
    usual = usual_ratings(given, inside_of)
    found: list[dict[str, Any]] = []
    heaviness: list[dict[str, float]] = []
    for places, inside in zip(_grouped(layout.keyword, tied, size), inside_of, strict=True):
        demands = given.demand[places].tolist()
        keywords = dict(zip((given.keywords[at] for at in places.tolist()), _rounded(tied[places]), strict=True))
        apps = dict(zip(given.track_ids[inside].tolist(), _rounded(weight[inside]), strict=True))
        typical = tuple(islice((word for word in keywords if all(part in common for part in word.split())), TYPICAL))
        if scores == "founder":
            typed = [(word, given.facts.typed[word]) for word in typical if word in given.facts.typed]
            scored = founders_score(given.rivals(inside[:RIVALS_MAX]), typed, usual, ratings_decide)
        else:
            strengths = list(zip(given.strengths(inside), apps.values(), strict=True))
            scored = score(demands, strengths, given.ratings[inside].tolist())
        titles = [given.titles[at] for at in inside[:TITLES_MAX].tolist()]
        found.append(
            {
                "score": scored,
                "keywords": keywords,
                "apps": apps,
                "typical": tuple(word for word in typical if word not in given.facts.typed),
                "coverage": scored.known * coverage(titles, given.facts, searched),
            }
        )
        # A name is made of what people search for: what is wanted counts up to three times what is not.
        heaviness.append(
            {word: tie * (0.5 + want / 100) for (word, tie), want in zip(keywords.items(), demands, strict=True)}
        )
    named = names(heaviness, given.said.common)
    return [
        Market(name, names=frequent_names(given, inside[:RIVALS_MAX], name), **rest)
        for name, inside, rest in zip(named, inside_of, found, strict=True)
    ]


def usual_ratings(given: Arranged, markets: Iterable[Longs]) -> float:
    """How many ratings the apps of the median market have beside its leader."""
    rated = (given.ratings[inside] for inside in markets)
    return float(np.median([ratings.sum() - ratings.max() for ratings in rated if len(ratings)] or [0]))


def frequent_names(given: Arranged, inside: Longs, name: str) -> tuple[str, ...]:
    """The words that several developers have in titles, and with them most of the market's ratings; or a fifth of them, if
    the market's own name has the word."""
    said, ratings, own = given.said, given.ratings[inside].astype(np.float64), set(tokens(name))
    held = said.titles[inside].T @ ratings / max(1.0, ratings.sum())
    often = np.flatnonzero((held >= NAMED_SHARE) & (said.developers >= DEVELOPERS_MIN))
    found = [at for at in often.tolist() if held[at] >= NAME_SHARE or said.words[at] in own]
    return tuple(said.words[at] for at in sorted(found, key=lambda at: -held[at]))


def coverage(titles: Iterable[str], facts: KeywordFacts, searched: Container[str]) -> float:
    """The share of the keywords in these titles that was searched. One that is in a single title says little."""
    done = open_ = 0
    for keyword in {word for title in titles for word in discovered(title)}:
        if keyword in searched:
            done += 1
        elif facts.waiting.get(keyword, 0) >= TITLES_MANY:
            open_ += 1
    return round(done / (done + open_), WEIGHT_PLACES) if done + open_ else 1.0


def _grouped(labels: Ints, weight: Floats, size: int) -> list[Longs]:
    """The members of each market, the heaviest first."""
    order = np.lexsort((np.arange(len(labels)), -weight, labels))
    begins = np.searchsorted(labels[order], np.arange(size + 1))
    return [order[begins[at] : begins[at + 1]] for at in range(size)]


def _rounded(weight: Floats) -> list[float]:
    rounded: list[float] = np.round(weight.astype(np.float64), WEIGHT_PLACES).tolist()
    return rounded


def _volumes(labels: Ints, edges: Edges) -> list[float]:
    """All that ties the keywords of each market, to each other and to those of others."""
    size = int(labels.max(initial=NONE)) + 1
    total = np.zeros(size)
    for end in (labels[edges.a], labels[edges.b]):
        inside = end != NONE
        total += sums(end[inside], edges.weight[inside], size)
    return [float(each) for each in total]
