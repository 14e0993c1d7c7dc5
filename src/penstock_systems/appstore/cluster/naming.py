"""A market's name: the keywords that weigh the most in it and mean little elsewhere, as text that is safe to show.

A word that only one developer has in a title is a brand: it names an app, and a market only where there is nothing else."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Mapping, Sequence

from penstock_systems.appstore.store.text import cleaned

KEYWORDS_A_NAME = 3
NAME_CHARACTERS_MAX = 80
LEAST_SHARE = 0.2  # of what the first keyword is worth: what says less is left unsaid
NAMELESS = "unnamed market"  # one whose keywords hold nothing that can be shown

Weights = Mapping[str, float]  # of a market's keywords


def names(markets: Sequence[Weights], common: Container[str] | None = None) -> list[str]:
    """A name for each market, in the same order. `common` are the words that are no brands; None if nobody knows."""
    holders = Counter(word for market in markets for word in {word for keyword in market for word in keyword.split()})
    plain = markets if common is None else [_unbranded(market, common) for market in markets]
    return [_named(market, holders, len(markets)) for market in plain]


def _unbranded(market: Weights, common: Container[str]) -> Weights:
    """The keywords without a brand, if there are any that can be shown."""
    plain = {keyword: weight for keyword, weight in market.items() if all(word in common for word in keyword.split())}
    return plain if any(cleaned(keyword) for keyword in plain) else market


def _named(market: Weights, holders: Mapping[str, int], markets: int) -> str:
    telling = _telling(market, holders, markets)
    ranked = sorted(market, key=lambda keyword: (-_worth(keyword, market[keyword], telling), len(keyword), keyword))
    worth = _worth(ranked[0], market[ranked[0]], telling) if ranked else 0.0
    chosen: list[str] = []
    used: set[str] = set()
    for keyword in ranked:
        said = set(keyword.split())
        if _worth(keyword, market[keyword], telling) < LEAST_SHARE * worth:
            break
        if said & used or (shown := cleaned(keyword)) is None:
            continue
        if len(", ".join([*chosen, shown])) > NAME_CHARACTERS_MAX:
            continue
        chosen.append(shown)
        used |= said
        if len(chosen) == KEYWORDS_A_NAME:
            break
    name = ", ".join(chosen) or NAMELESS
    return name[:1].upper() + name[1:]


def _telling(market: Weights, holders: Mapping[str, int], markets: int) -> dict[str, float]:
    """What each word says about this market: how much of its weight holds the word, and in how few other markets it is."""
    held: dict[str, float] = defaultdict(float)
    for keyword, weight in market.items():
        for word in set(keyword.split()):
            held[word] += weight
    return {word: weight * math.log1p(markets / holders[word]) for word, weight in held.items()}


def _worth(keyword: str, weight: float, telling: Mapping[str, float]) -> float:
    """A keyword says no more than the least of its words: a brand beside a topic names one app, not the market."""
    return min((telling[word] for word in keyword.split()), default=0.0) * (0.5 + weight)
