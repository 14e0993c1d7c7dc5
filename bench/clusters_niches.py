"""Which planted niches and traps are among the first twenty markets, by the founder's scores.

A catalogue is crawled and laid out in markets, the store is asked to complete their typical keywords, and they are ranked as
the clustering task ranks them: without those that are somebody's franchise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from bench.clusters_truth import Known, Planted, agreement, planted
from penstock_systems.appstore.cluster.franchises import owner
from penstock_systems.appstore.cluster.market import Market
from penstock_systems.appstore.cluster.markets import computed
from penstock_systems.appstore.crawl.completions import LETTERS
from penstock_systems.standins.appstore import Catalogue
from penstock_systems.standins.appstore.hints import hints
from penstock_systems.standins.appstore.texts import description

FIRST = 20
HALF = 0.5


@dataclass(frozen=True, slots=True)
class Listed:
    """A market of the list, the best first."""

    name: str
    score: float
    apps: frozenset[int]


@dataclass(frozen=True, slots=True)
class Found:
    """`share` of the niches, and `trapped` of the traps, are among the first twenty markets."""

    listed: list[Listed]
    named: list[str]  # what each market of the list is, by the truth
    niches: int
    share: float
    trapped: float
    v: float  # how near the markets are to the truth, over all planted apps


def niches(known: Known) -> Found:
    ranked = ranking(known)
    truth = planted(known)
    where = {app: number for number, market in enumerate(ranked) for app in market.apps}
    listed = [Listed(each.name, each.score.opportunity, frozenset(each.apps)) for each in ranked]
    free = [each for each, market in zip(listed, ranked, strict=True) if market.franchise is None]
    return judged(free[:FIRST], truth, agreement(truth.market_of, where).whole)


def ranking(known: Known) -> list[Market]:
    """The markets, the best first, each with its franchise if it has one."""
    asked = {word for market in computed(known.crawled).markets for word in market.typical}
    typed = {word: letters_needed(known.catalogue, word) for word in asked}
    crawled = replace(known.crawled, keywords=replace(known.crawled.keywords, typed=typed))
    markets = [owner(market, partial(_text, known.catalogue)) for market in computed(crawled).markets]
    return sorted(markets, key=lambda market: -market.score.opportunity)


def letters_needed(catalogue: Catalogue, keyword: str) -> int:
    """As the crawl asks for it."""
    counts = (*(count for count in LETTERS if count < len(keyword)), len(keyword))
    return next((count for count in counts if keyword in hints(catalogue, keyword[:count])), 0)


def _text(catalogue: Catalogue, id: int) -> str | None:
    """What the maker writes of an app, without its title."""
    index = catalogue.index(id)
    return None if index is None else description(catalogue.app(index)).replace(catalogue.app(index).title, " ")


def judged(listed: Sequence[Listed], truth: Planted, v: float = 1.0) -> Found:
    named = [told(market, truth) for market in listed]
    return Found(
        listed=list(listed),
        named=named,
        niches=len(truth.niches),
        share=_share(truth.niches, named),
        trapped=_share(truth.traps, named),
        v=v,
    )


def _share(of: Sequence[str], named: Iterable[str]) -> float:
    return len(set(of) & set(named)) / max(1, len(of))


def told(market: Listed, truth: Planted) -> str:
    """The planted market that most of its apps are of, if it also holds half of that market's apps; nothing otherwise."""
    inside = Counter(truth.market_of.get(each, "") for each in sorted(market.apps))
    name, count = inside.most_common(1)[0] if inside else ("", 0)
    planted_there = sum(each == name for each in truth.market_of.values())
    return name if name and count >= HALF * planted_there else ""
