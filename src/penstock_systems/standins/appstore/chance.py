"""Chance without memory: every number is a function of what it is about, so any app can be asked for first."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_BELL = NormalDist()


def mix(*parts: int) -> int:
    """64 bits that look random and are the same for the same parts (splitmix64, chained)."""
    state = _GOLDEN
    for part in parts:
        state = (state + (part & _MASK) * 0xBF58476D1CE4E5B9 + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


@lru_cache(1_024)
def salted(seed: int, salt: int) -> int:
    """What the numbers about one matter begin with: `then(salted(1, 2), 3)` is `mix(1, 2, 3)`, and costs a third."""
    return mix(seed, salt)


def then(state: int, part: int) -> int:
    state = (state + (part & _MASK) * 0xBF58476D1CE4E5B9 + _GOLDEN) & _MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
    return state ^ (state >> 31)


def share(*parts: int) -> float:
    """Evenly spread, above 0 and below 1."""
    return ((mix(*parts) >> 12) + 0.5) / (1 << 52)


def share_then(state: int, part: int) -> float:
    """`share_then(mix(1, 2), 3)` is `share(1, 2, 3)`."""
    return ((then(state, part) >> 12) + 0.5) / (1 << 52)


def bell(*parts: int) -> float:
    """Normally spread around 0 with deviation 1."""
    return _BELL.inv_cdf(share(*parts))


def coded(text: str) -> int:
    """A text as a part. The `hash` built in differs from run to run."""
    return zlib.crc32(text.encode())


def pick(choices: Sequence[T], *parts: int) -> T:
    return choices[mix(*parts) % len(choices)]


# Normally spread numbers to choose from where many are wanted at once.
BELLS = [_BELL.inv_cdf((place + 0.5) / 4_096) for place in range(4_096)]


class Draws:
    """One number after the other about the same thing: what `random.Random` gives, at a tenth of what it costs to make."""

    __slots__ = ("_state",)

    def __init__(self, *parts: int) -> None:
        self._state = then(salted(*parts[:2]), parts[2]) if len(parts) == 3 else mix(*parts)

    def bits(self) -> int:
        self._state = state = (self._state + _GOLDEN) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        return state ^ (state >> 31)

    def share(self) -> float:
        return ((self.bits() >> 12) + 0.5) / (1 << 52)

    def below(self, count: int) -> int:
        return self.bits() % count

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.bits() % len(choices)]

    def bell(self) -> float:
        return _BELL.inv_cdf(self.share())

    def skewed(self, median: float, spread: float) -> float:
        """Log-normally spread around a median."""
        return median * math.exp(spread * self.bell())


def interpolated(points: Sequence[tuple[float, float]], x: float) -> float:
    """Between two points on a straight line, and outside of them as at the end."""
    for (left, low), (right, high) in pairwise(points):
        if x <= right:
            return low + (high - low) * max(0.0, x - left) / (right - left)
    return points[-1][1]


def offsets_of(weights: Iterable[float], total: int) -> list[int]:
    """Where each part begins when `total` is split by weight, and where the last one ends."""
    sums = [0.0, *accumulate(weights)]
    return [round(total * part / sums[-1]) for part in sums]


class Shuffle:
    """An order of 0..size-1 that can be read both ways and takes no memory."""

    def __init__(self, size: int, *parts: int) -> None:
        self.size = size
        self._shift = mix(*parts, 1) % size
        factor = mix(*parts, 2) % size
        while math.gcd(factor, size) != 1:
            factor += 1
        self._factor, self._back = factor, pow(factor, -1, size)

    def place(self, item: int) -> int:
        return (item * self._factor + self._shift) % self.size

    def item(self, place: int) -> int:
        return (place - self._shift) * self._back % self.size
