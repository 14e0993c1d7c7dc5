"""The five zones of the success rate: what each does to the batch and the interval, within rails that nothing leaves."""

from __future__ import annotations

from typing import Literal, NamedTuple

import msgspec

from penstock.model.errors import BadConfig

Action = Literal["critical_reset", "halve", "hold", "gentle_ramp", "aggressive_ramp"]

CRITICAL_BELOW = 0.20
LOW_BELOW = 0.50
GOOD_ABOVE = 0.80
GREAT_ABOVE = 0.95
DAY_MS = 86_400_000


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rails and lengths of time. `plain_window` is the articles' own way of measuring, for comparison: no outcome is
    ever forgotten before its five minutes are over, and none is judged before five have gathered in them."""

    batch_min: int = 2
    batch_max: int = 50
    batch_first: int = 5
    interval_min_ms: int = 10_000
    interval_max_ms: int = 120_000
    interval_first_ms: int = 30_000
    idle_max_ms: int = 120_000  # with nothing to do it looks this rarely; it may be longer than the rail
    cooldown_ms: int = 300_000
    window_minutes: int = 5
    look_back_minutes: int = 30  # how far the window reaches back for a sample, or a slow service is never judged
    sample_min: int = 5
    parallel: int = 8
    chunk_pause_ms: int = 200
    target_per_day: int | None = None
    plain_window: bool = False

    def __post_init__(self) -> None:
        for name, least, value, most in (
            ("batch_min", 1, self.batch_min, self.batch_max),
            ("batch_first", self.batch_min, self.batch_first, self.batch_max),
            ("interval_min_ms", 1, self.interval_min_ms, self.interval_max_ms),
            ("interval_first_ms", self.interval_min_ms, self.interval_first_ms, self.interval_max_ms),
            ("window_minutes", 1, self.window_minutes, self.look_back_minutes),
            ("parallel", 1, self.parallel, self.parallel),
            ("target_per_day", 1, self.target_per_day or 1, DAY_MS),
        ):
            if not least <= value <= most:
                raise BadConfig(f"{name} is {value}. It has to be from {least} to {most}.", field=name, value=value)

    def batch(self, size: int) -> int:
        return max(self.batch_min, min(self.batch_max, size))

    def interval_ms(self, interval_ms: int) -> int:
        return max(self.interval_min_ms, min(self.interval_max_ms, interval_ms))

    def pause_for_target_ms(self, items: int) -> int:
        """How long so many items have to last."""
        return 0 if self.target_per_day is None else -(-items * DAY_MS // self.target_per_day)


class Adapted(NamedTuple):
    batch_size: int
    interval_ms: int
    action: Action
    cooldown_ms: int = 0


def adapt(batch_size: int, interval_ms: int, rate: float, rules: Rules, *, capped: bool = False) -> Adapted:
    """The next batch and interval. Whole numbers all the way: 10 x 1.1 is 11, not the 12 that floats round up to.

    `capped`: something else than the interval holds the pace down, so that going faster could not be learnt from.
    """
    if rate < CRITICAL_BELOW:
        return critical(rules)
    if rate < LOW_BELOW:
        return halved(batch_size, interval_ms, rules)
    if rate <= GOOD_ABOVE or capped:
        return Adapted(batch_size, interval_ms, "hold")
    if rate > GREAT_ABOVE:
        faster = Adapted(_ceil(batch_size * 5, 4), interval_ms * 4 // 5, "aggressive_ramp")
    else:
        faster = Adapted(_ceil(batch_size * 11, 10), interval_ms * 95 // 100, "gentle_ramp")
    return Adapted(rules.batch(faster.batch_size), rules.interval_ms(faster.interval_ms), faster.action)


def halved(batch_size: int, interval_ms: int, rules: Rules) -> Adapted:
    return Adapted(rules.batch(batch_size // 2), rules.interval_ms(interval_ms * 3 // 2), "halve")


def critical(rules: Rules) -> Adapted:
    return Adapted(rules.batch_min, rules.interval_max_ms, "critical_reset", rules.cooldown_ms)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)
