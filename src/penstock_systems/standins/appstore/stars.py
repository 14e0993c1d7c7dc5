"""Histograms: how a mean number of stars comes about, in the J shape that ratings have."""

from __future__ import annotations

import math
from functools import lru_cache

from penstock_systems.standins.appstore.chance import mix, then

SAMPLED_RATINGS_MAX = 20  # so few are drawn one by one
USUAL = (0.70, 0.14, 0.06, 0.03, 0.07)  # five stars first
STEPS = 100  # of the table, for each star


def spread(total: int, mean: float, *about: int) -> list[int]:
    """So many ratings as counts of five stars, four, and so on down to one."""
    if not total:
        return [0, 0, 0, 0, 0]
    odds = tilted(mean)
    if total > SAMPLED_RATINGS_MAX:
        counts = [int(total * part) for part in odds]
        counts[0] += total - sum(counts)
        return counts
    counts = [0, 0, 0, 0, 0]
    luck = mix(*about)
    for number in range(total):
        luck = luck >> 12 if number % 5 else then(luck, number)  # five from one
        left, place = (luck & 0xFFF) / 0x1000, 0
        while place < 4 and left >= odds[place]:
            left -= odds[place]
            place += 1
        counts[place] += 1
    return counts


def average(histogram: list[int]) -> float:
    """The mean number of stars to five places, as Apple gives it; 0 without ratings."""
    five, four, three, two, one = histogram
    total = five + four + three + two + one
    return round((5 * five + 4 * four + 3 * three + 2 * two + one) / total, 5) if total else 0.0


def tilted(mean: float) -> list[float]:
    """The usual histogram bent until its mean is the one asked for. Between two rows of the table it stays exact."""
    row, rest = divmod(mean * STEPS, 1.0)
    below, above = _row(int(row)), _row(int(row) + 1)
    return [low + (high - low) * rest for low, high in zip(below, above, strict=True)]


@lru_cache(5 * STEPS)
def _row(step: int) -> tuple[float, ...]:
    mean, low, high = step / STEPS, -8.0, 8.0
    for _ in range(40):
        middle = (low + high) / 2
        weights = [part * math.exp(middle * (5 - place)) for place, part in enumerate(USUAL)]
        total = sum(weights)
        if sum(weight * (5 - place) for place, weight in enumerate(weights)) / total < mean:
            low = middle
        else:
            high = middle
    return tuple(weight / total for weight in weights)
