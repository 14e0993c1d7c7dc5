"""When a database reaches its cap: a straight line through its daily sizes, and how near the cap it is today."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from penstock.model.limits import DAY, GB
from penstock.model.times import MICROS, day_of

SAMPLES_MAX = 14  # two weeks: long enough to even out a weekend, short enough to notice a new habit
DAYS_MIN = 0.5  # two samples a few seconds apart, around midnight, say nothing about a day
WARN_PERCENT, WARN_LOUDER_PERCENT = 60, 80


class Sample(NamedTuple):
    """The size at a moment, in the engine's microseconds."""

    at: int
    size_bytes: int


class Level(StrEnum):
    OK = "ok"
    WARN_60 = "warn_60"
    WARN_80 = "warn_80"
    OVER = "over"


class Forecast(msgspec.Struct, frozen=True):
    """Where the size stands and goes. `days_left` is None where it does not grow, is not known, or has no cap."""

    level: Level
    size_bytes: int
    cap_bytes: int | None
    growth_bytes_per_day: float
    days_left: float | None

    def __str__(self) -> str:
        if self.cap_bytes is None:
            return f"{_gb(self.size_bytes)}, without a cap"
        share = f"{_gb(self.size_bytes)} of {_gb(self.cap_bytes)} ({self.size_bytes / self.cap_bytes:.0%})"
        if self.level is Level.OVER:
            return f"{share}: over the cap"
        if self.days_left is None:
            return f"{share}, not growing"
        return f"{share}, growing {_gb(self.growth_bytes_per_day)} a day: full in about {self.days_left:.0f} days"


def forecast(samples: Iterable[Sample], *, cap_bytes: int | None) -> Forecast:
    """Looks ahead from sizes in any order; of several on one day the last counts."""
    daily = _daily(samples)
    size = daily[-1].size_bytes if daily else 0
    growth = _growth_bytes_per_day(daily)
    return Forecast(_level(size, cap_bytes), size, cap_bytes, growth, _days_left(size, cap_bytes, growth))


def _daily(samples: Iterable[Sample]) -> list[Sample]:
    last_of_day = {day_of(sample.at): sample for sample in sorted(samples)}
    return list(last_of_day.values())[-SAMPLES_MAX:]


def _growth_bytes_per_day(daily: Sequence[Sample]) -> float:
    """The slope of the least-squares line, or 0 where there is too little to draw one."""
    days = [(sample.at - daily[0].at) / (DAY * MICROS) for sample in daily]
    if len(days) < 2 or days[-1] < DAYS_MIN:
        return 0.0
    sizes = [float(sample.size_bytes) for sample in daily]
    mean_day, mean_size = sum(days) / len(days), sum(sizes) / len(sizes)
    spread = sum((day - mean_day) ** 2 for day in days)
    return sum((day - mean_day) * (size - mean_size) for day, size in zip(days, sizes, strict=True)) / spread


def _days_left(size: int, cap: int | None, growth: float) -> float | None:
    if cap is None:
        return None
    if size >= cap:
        return 0.0
    return (cap - size) / growth if growth > 0 else None


def _level(size: int, cap: int | None) -> Level:
    if cap is None or size * 100 < WARN_PERCENT * cap:
        return Level.OK
    if size * 100 < WARN_LOUDER_PERCENT * cap:
        return Level.WARN_60
    return Level.WARN_80 if size < cap else Level.OVER


def _gb(size_bytes: float) -> str:
    return f"{size_bytes / GB:.1f} GB"
