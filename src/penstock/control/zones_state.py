"""All that the zones remember, in one value that survives being saved, edited by hand and read by a later version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

import msgspec

from penstock.model.errors import BadConfig

MINUTE_MS = 60_000
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


class Minute(msgspec.Struct, frozen=True):
    dispatched: int = 0
    completed: int = 0
    failed: int = 0

    @property
    def outcomes(self) -> int:
        return self.completed + self.failed

    def __add__(self, other: Minute) -> Minute:
        return Minute(self.dispatched + other.dispatched, self.completed + other.completed, self.failed + other.failed)

    def __sub__(self, other: Minute) -> Minute:
        return Minute(
            max(0, self.dispatched - other.dispatched),
            max(0, self.completed - other.completed),
            max(0, self.failed - other.failed),
        )


Minutes = Mapping[int, Minute]  # by the millisecond the minute begins at


class Pruned(NamedTuple):
    minutes: dict[int, Minute]
    removed: int


def minute_of(now_ms: int) -> int:
    return now_ms // MINUTE_MS * MINUTE_MS


def added(minutes: Minutes, now_ms: int, counts: Minute) -> dict[int, Minute]:
    start = minute_of(now_ms)
    return {**minutes, start: minutes.get(start, Minute()) + counts}


def window(minutes: Minutes, now_ms: int, length: int) -> Minute:
    """The sum of the last so many minutes."""
    begin = minute_of(now_ms - length * MINUTE_MS)
    return sum((counts for start, counts in minutes.items() if begin <= start <= now_ms), Minute())


def newest_first(minutes: Minutes, now_ms: int) -> Iterator[tuple[int, Minute]]:
    return ((start, minutes[start]) for start in sorted(minutes, reverse=True) if start <= now_ms)


def pruned(minutes: Minutes, now_ms: int, *, length: int, look_back: int, enough: int) -> Pruned:
    """Keeps the window and a minute more; older buckets only while the newer ones hold too few outcomes to judge by.

    Buckets that lie ahead come from a clock that was set back, and go.
    """
    kept: dict[int, Minute] = {}
    outcomes = 0
    for start, counts in newest_first(minutes, now_ms):
        age = now_ms - start
        if age <= (length + 1) * MINUTE_MS or (age <= look_back * MINUTE_MS and outcomes < enough):
            kept[start] = counts
        outcomes += counts.outcomes
    return Pruned(dict(sorted(kept.items())), len(minutes) - len(kept))


class Cooldown(msgspec.Struct, frozen=True):
    """Times are milliseconds since 1970. A gate that was never shut has three zeros."""

    started_at: int = 0
    duration_ms: int = 0
    until: int = 0

    @classmethod
    def trigger(cls, now_ms: int, duration_ms: int) -> Cooldown:
        return cls(now_ms, duration_ms, now_ms + duration_ms)

    def is_active(self, now_ms: int) -> bool:
        return self.remaining_ms(now_ms) > 0

    def remaining_ms(self, now_ms: int) -> int:
        return max(0, min(self.until - now_ms, self.duration_ms))

    def seen(self, now_ms: int) -> Cooldown:
        """The gate on a clock that shows this: if the clock was set back, it is shut from now on for its length at most."""
        return self if now_ms >= self.started_at else Cooldown.trigger(now_ms, self.duration_ms)


class ZonesState(msgspec.Struct, frozen=True, kw_only=True):
    """Times are milliseconds since 1970, and 0 if never."""

    total_dispatched: int = 0
    total_completed: int = 0
    total_failed: int = 0
    total_skipped: int = 0
    last_tick_at: int = 0
    last_work_at: int = 0
    running: bool = True
    current_batch_size: int = 5
    current_interval_ms: int = 30_000
    cooldown_until: int = 0
    cooldown_started_at: int = 0
    cooldown_ms: int = 0
    metrics: dict[int, Minute] = msgspec.field(default_factory=dict)
    generation: int = 0  # goes up with every reset: what a tick of an earlier one brings is dropped
    window_epoch: int = 0  # no outcome from before counts any more
    spent: Minute = Minute()  # what the epoch's own minute held when it began
    idle_streak: int = 0
    blocked_streak: int = 0  # batches in a row that nearly all met a rate limit
    probation: bool = False  # back from a cooldown: the first batch has to bring one success
    counting_since: int = 0

    @property
    def in_flight(self) -> int:
        return self.total_dispatched - self.total_completed - self.total_failed - self.total_skipped

    @property
    def cooldown(self) -> Cooldown:
        return Cooldown(self.cooldown_started_at, self.cooldown_ms, self.cooldown_until)


def fresh(rules: Rules, *, now_ms: int, generation: int = 0) -> ZonesState:
    return ZonesState(
        current_batch_size=rules.batch_first,
        current_interval_ms=rules.interval_first_ms,
        counting_since=now_ms,
        generation=generation,
    )


def changed(state: ZonesState, **fields: Any) -> ZonesState:
    return msgspec.structs.replace(state, **fields)


def remeasured(state: ZonesState, now_ms: int) -> ZonesState:
    """Measuring starts anew from now on. The counts stay for whoever wants to see them."""
    return changed(state, window_epoch=now_ms, spent=state.metrics.get(minute_of(now_ms), Minute()))


def cooled(state: ZonesState, gate: Cooldown) -> ZonesState:
    return changed(state, cooldown_started_at=gate.started_at, cooldown_ms=gate.duration_ms, cooldown_until=gate.until)


def touched(state: ZonesState, rules: Rules, now_ms: int) -> ZonesState:
    """Seen alive now, and pruned: done on every tick, also an idle or a cooling one."""
    kept = pruned(
        state.metrics,
        now_ms,
        length=rules.window_minutes,
        look_back=rules.look_back_minutes,
        enough=rules.sample_min,
    )
    state = changed(state, metrics=kept.minutes, last_tick_at=now_ms)
    # After a clock was set back nothing may lie ahead, or new outcomes would not count until it has caught up.
    return remeasured(state, now_ms) if state.window_epoch > now_ms else state


def measured(state: ZonesState, rules: Rules, now_ms: int) -> Minute:
    """The outcomes to judge by: the window, reaching further back until there are enough, never past the epoch."""
    if rules.plain_window:
        return window(state.metrics, now_ms, rules.window_minutes)
    begin = minute_of(now_ms - rules.window_minutes * MINUTE_MS)
    furthest = minute_of(now_ms - rules.look_back_minutes * MINUTE_MS)
    epoch = minute_of(state.window_epoch)
    sample = Minute()
    for start, counts in newest_first(state.metrics, now_ms):
        if start < max(furthest, epoch) or (start < begin and sample.outcomes >= rules.sample_min):
            break
        sample += counts - state.spent if start == epoch else counts
    return sample


def success_rate(counts: Minute) -> float:
    """Without data it is 1: whoever never tried has no reason to be slow."""
    return counts.completed / counts.outcomes if counts.outcomes else 1.0


def save(state: ZonesState) -> bytes:
    return msgspec.json.encode(state)


def load(saved: bytes | str | Mapping[str, object] | None, rules: Rules, *, now_ms: int) -> ZonesState:
    """Saved values over the defaults: what has a wrong type is repaired, what left the rails is put back on them."""
    state = fresh(rules, now_ms=now_ms)
    given = _mapping(saved)
    if not given:
        return state
    state = _repaired(state, given)
    state = changed(
        state,
        current_batch_size=rules.batch(state.current_batch_size),
        current_interval_ms=rules.interval_ms(state.current_interval_ms),
        # What was in flight when the process ended is pending again.
        total_dispatched=state.total_completed + state.total_failed + state.total_skipped,
    )
    past = {name: min(getattr(state, name), now_ms) for name in ("last_tick_at", "last_work_at", "counting_since")}
    return cooled(changed(touched(state, rules, now_ms), **past), _cooldown(state, rules, now_ms))


def _mapping(saved: bytes | str | Mapping[str, object] | None) -> Mapping[str, object]:
    if isinstance(saved, bytes | str):
        try:
            saved = msgspec.json.decode(saved)
        except msgspec.DecodeError:
            return {}
    return saved if isinstance(saved, Mapping) else {}


_FIELDS = msgspec.structs.fields(ZonesState)  # it takes a millisecond, and a controller is loaded often


def _repaired(state: ZonesState, given: Mapping[str, object]) -> ZonesState:
    good: dict[str, Any] = {}
    for field in _FIELDS:
        if field.name == "metrics":
            good["metrics"] = _minutes(given.get("metrics"))
        elif field.name in given:
            try:
                value = msgspec.convert(given[field.name], field.type)
            except msgspec.ValidationError:
                continue
            good[field.name] = max(0, value) if type(value) is int else value
    return changed(state, **good)


def _cooldown(state: ZonesState, rules: Rules, now_ms: int) -> Cooldown:
    """The saved gate, shut for no longer than today's rules say, also if all that was saved of it is its end."""
    left = min(max(0, state.cooldown_until - now_ms), rules.cooldown_ms)
    gate = state.cooldown.seen(now_ms)
    return Cooldown.trigger(now_ms, left) if left and gate.remaining_ms(now_ms) != left else gate


def _minutes(given: object) -> dict[int, Minute]:
    """Minute by minute: keys come back from JSON as text, and one bad entry does not cost the others."""
    minutes: dict[int, Minute] = {}
    for start, counts in given.items() if isinstance(given, Mapping) else ():
        try:
            entry = msgspec.convert({start: counts}, dict[int, Minute], strict=False)
        except msgspec.ValidationError:
            continue
        minutes |= {minute_of(at): kept - Minute() for at, kept in entry.items() if kept.outcomes > 0}
    return minutes
