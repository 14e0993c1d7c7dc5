"""How well each way to find users suits a market, from its figures. What the ways are is in the table `marketing_methods`."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from penstock_systems.appstore.opportunity.facts import MarketFacts, middle, share

# Genres whose apps can be shown in a film without a word.
VISUAL = frozenset(
    "Games|Photo & Video|Graphics & Design|Entertainment|Food & Drink|Health & Fitness|Lifestyle|Shopping|Travel|Music".split(
        "|"
    )
)
KEYWORDS_MANY = 50  # a market with so many gives an article for every one of them
NEIGHBOURS_MANY = 5
MANY_RATINGS_LOG = 6.0  # a million ratings cannot be caught up with


class MethodScore(msgspec.Struct, frozen=True):
    """`score` is 0 to 100; the reason holds the figures it comes from."""

    method_id: str
    score: float
    reason: str


Scored = tuple[float, str]


def method_scores(facts: MarketFacts) -> list[MethodScore]:
    """All of them, the one that suits best first."""
    found = [MethodScore(id, round(min(100.0, max(0.0, score)), 1), why) for id, (score, why) in _judged(facts).items()]
    return sorted(found, key=lambda each: (-each.score, each.method_id))


def _judged(facts: MarketFacts) -> dict[str, Scored]:
    return {id: rule(facts) for id, rule in RULES.items()}


def _store_search(facts: MarketFacts) -> Scored:
    shared = f"{facts.apps_count:,} apps share the market (spread {facts.fragmentation:.0f} of 100)"
    why = f"Demand is {facts.demand:.0f} of 100, and {shared}."
    return 0.6 * facts.demand + 0.4 * facts.fragmentation, why


def _search_ads(facts: MarketFacts) -> Scored:
    why = f"Demand is {facts.demand:.0f} of 100, and the apps next to yours are {facts.competitiveness:.0f} of 100 strong."
    return 0.5 * facts.demand + 0.3 * (100 - facts.competitiveness) + 0.2 * _paid(facts), why


def _unhappy_users(facts: MarketFacts) -> Scored:
    if facts.dissatisfaction is None:
        return 0.0, "These apps have no ratings or reviews, so the complaints of their users are unknown."
    stars = "unknown stars" if facts.stars is None else f"{facts.stars:.1f} stars"
    why = f"The visible apps have {stars}; {facts.unhappy} of {facts.reviews} recent reviews complain."
    return facts.dissatisfaction, why


def _forums(facts: MarketFacts) -> Scored:
    first = f"the first app has {facts.first_share:.0f} % of all ratings"
    why = f"{facts.unhappy} of {facts.reviews} reviews are unhappy, and {first}."
    return 0.5 * facts.unhappy_share + 0.5 * facts.fragmentation, why


def _clips(facts: MarketFacts) -> Scored:
    known = [app for app in facts.visible if app.genre is not None]
    shown = sum(app.genre in VISUAL for app in known)
    return 0.8 * share(
        shown, len(known)
    ), f"{shown} of {len(known)} visible apps belong to a genre that a short film can show."


def _articles(facts: MarketFacts) -> Scored:
    many = min(100.0, share(facts.keywords_count, KEYWORDS_MANY))
    why = f"People search with {facts.keywords_count:,} different keywords; demand is {facts.demand:.0f} of 100."
    return 0.5 * many + 0.5 * facts.demand, why


def _neighbours(facts: MarketFacts) -> Scored:
    near = len(facts.neighbours)
    named = f": {', '.join(facts.neighbours[:2])}" if near else ""
    many = "1 market is" if near == 1 else f"{near} markets are"
    return 0.5 * share(near, NEIGHBOURS_MANY), f"{many} adjacent to this one{named}."


def _languages(facts: MarketFacts) -> Scored:
    known = [app.languages for app in facts.visible if app.languages is not None]
    single = sum(count == 1 for count in known)
    return share(single, len(known)), f"{single} of {len(known)} visible apps are in one language only."


def _early_ratings(facts: MarketFacts) -> Scored:
    typical = middle([app.ratings for app in facts.visible])
    score = 100 * (1 - min(1.0, math.log10(1 + typical) / MANY_RATINGS_LOG))
    return score, f"A typical visible app has {typical:,.0f} ratings, which a new app has to reach."


def _price(facts: MarketFacts) -> Scored:
    """The more alike they all are, the more another way stands out."""
    known = [app for app in facts.visible if app.price is not None]
    paid = sum(bool(app.price) for app in known)
    alike = abs(2 * share(paid, len(known)) - 100) if known else 0.0
    return 0.6 * alike, f"{paid} of {len(known)} visible apps are not free to download."


def _paid(facts: MarketFacts) -> float:
    known = [app for app in facts.visible if app.price is not None]
    return share(sum(bool(app.price) for app in known), len(known))


RULES: dict[str, Callable[[MarketFacts], Scored]] = {
    "store-search": _store_search,
    "search-ads": _search_ads,
    "unhappy-users": _unhappy_users,
    "forums": _forums,
    "clips": _clips,
    "articles": _articles,
    "neighbours": _neighbours,
    "languages": _languages,
    "early-ratings": _early_ratings,
    "price": _price,
}
