"""Chance without memory: every number is a function of what it is about, so any app can be asked for first."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_BELL = NormalDist()


def mix(*parts: int) -> int:
    """64 bits that look random and are the same for the same parts (splitmix64, chained)."""
    state = 0x9E3779B97F4A7C15
    for part in parts:
        state = (state + (part & _MASK) * 0xBF58476D1CE4E5B9 + 0x9E3779B97F4A7C15) & _MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _MASK
        state ^= state >> 31
    return state


def share(*parts: int) -> float:
    """Evenly spread, above 0 and below 1."""
    return ((mix(*parts) >> 12) + 0.5) / (1 << 52)


def bell(*parts: int) -> float:
    """Normally spread around 0 with deviation 1."""
    return _BELL.inv_cdf(share(*parts))


def coded(text: str) -> int:
    """A text as a part. The `hash` built in differs from run to run."""
    return zlib.crc32(text.encode())


def pick(choices: Sequence[T], *parts: int) -> T:
    return choices[mix(*parts) % len(choices)]


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
