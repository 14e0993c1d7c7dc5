"""Hints: what people search for that begins like this, the most wanted first."""

from __future__ import annotations

from penstock_systems.standins.appstore.catalogue import Catalogue
from penstock_systems.standins.appstore.chance import coded, share
from penstock_systems.standins.appstore.words import MODIFIERS

HINTS_MAX = 10
# How often a term has to be typed, as a logarithm, to be among the ten after so many letters: all else that people search
# for begins with the same ones.
CROWD = (9.0, 9.0, 3.6, 2.6, 1.7, 0.9, 0.2, -0.4, -1.0)
MODIFIERS_A_WORD = 5  # that people combine with one keyword


def hints(catalogue: Catalogue, prefix: str) -> list[str]:
    """`bud` suggests budget, and `budget pl` the budget planner."""
    typed = " ".join(prefix.casefold().split())
    first = typed.partition(" ")[0]
    if not first:
        return []
    wanted: dict[str, float] = {}
    least = CROWD[min(len(typed), len(CROWD) - 1)]
    for market in catalogue.markets:
        for place, keyword in enumerate(market.keywords):
            if keyword.startswith(first) or first == keyword:
                for term, worth in _terms(keyword):
                    typing = market.climate.wish - 0.1 * place + worth
                    if term.startswith(typed) and typing >= least:
                        wanted[term] = max(wanted.get(term, typing), typing)
    return sorted(wanted, key=lambda term: (-wanted[term], term))[:HINTS_MAX]


def _terms(keyword: str) -> list[tuple[str, float]]:
    liked = sorted(MODIFIERS, key=lambda modifier: share(coded(keyword), coded(modifier)))[:MODIFIERS_A_WORD]
    return [(keyword, 0.4), *((f"{keyword} {modifier}", -0.2 - 0.2 * turn) for turn, modifier in enumerate(liked))]
