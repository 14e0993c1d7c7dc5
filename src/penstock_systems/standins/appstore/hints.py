"""Hints: what people search for that begins like this, the most wanted first."""

from __future__ import annotations

from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import coded, share
from penstock_systems.standins.appstore.words import MODIFIERS

HINTS_MAX = 10
MODIFIERS_A_WORD = 5  # that people combine with one keyword


def hints(catalogue: Catalogue, prefix: str) -> list[str]:
    """`bud` suggests budget, and `budget pl` the budget planner."""
    typed = " ".join(prefix.casefold().split())
    first = typed.partition(" ")[0]
    if not first:
        return []
    wanted: dict[str, float] = {}
    for market in catalogue.markets:
        for place, keyword in enumerate(market.keywords):
            if keyword.startswith(first) or first == keyword:
                for term, worth in _terms(keyword):
                    if term.startswith(typed):
                        wanted[term] = max(wanted.get(term, -1e9), market.heat - 0.2 * place + worth)
    return sorted(wanted, key=lambda term: (-wanted[term], term))[:HINTS_MAX]


def _terms(keyword: str) -> list[tuple[str, float]]:
    liked = sorted(MODIFIERS, key=lambda modifier: share(coded(keyword), coded(modifier)))[:MODIFIERS_A_WORD]
    return [(keyword, 1.0), *((f"{keyword} {modifier}", -0.3 * turn) for turn, modifier in enumerate(liked))]
