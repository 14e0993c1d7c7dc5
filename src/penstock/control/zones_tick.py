"""One tick of the zones, decided and not done: whether to work, what the outcomes change, and when the next one comes.

Every function takes a state and gives a new one. Whoever calls it saves that and sets the alarm, whatever else fails.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Literal, NamedTuple

import msgspec

from penstock.control.zones_state import (
    Action,
    Adapted,
    Cooldown,
    Minute,
    Rules,
    ZonesState,
    adapt,
    added,
    changed,
    cooled,
    critical,
    fresh,
    halved,
    measured,
    remeasured,
    success_rate,
    touched,
)
from penstock.model.errors import BadParameter

START_AFTER_MS = 1_000
BLOCKED_PERCENT = 90  # a batch with so many rate limits met a wall; waiting for the window would send more against it
BLOCKED_MIN = 5


class ErrorClass(StrEnum):
    RATE_LIMIT = "rate_limit"
    SERVER_ERROR = "server_error"
    TIMEOUT = "timeout"
    NOT_FOUND = "not_found"
    PARSE_ERROR = "parse_error"
    UNKNOWN = "unknown"

    @property
    def of_the_item(self) -> bool:
        """Whether it says nothing about how fast the service may be asked."""
        return self in (ErrorClass.NOT_FOUND, ErrorClass.PARSE_ERROR)


class Tally(msgspec.Struct, frozen=True):
    """How the items of one tick ended. Skipped ones neither raise nor lower the success rate."""

    completed: int = 0
    failed: int = 0
    skipped: int = 0
    rate_limited: int = 0  # of the failed ones

    @property
    def outcomes(self) -> int:
        return self.completed + self.failed

    @property
    def items(self) -> int:
        return self.completed + self.failed + self.skipped


def tally(outcomes: Iterable[ErrorClass | None]) -> Tally:
    """Counts how items ended; None is a success."""
    completed = failed = skipped = limited = 0
    for outcome in outcomes:
        if outcome is None:
            completed += 1
        elif outcome.of_the_item:
            skipped += 1
        else:
            failed += 1
            limited += outcome is ErrorClass.RATE_LIMIT
    return Tally(completed, failed, skipped, limited)


class Wake(NamedTuple):
    """`work`: pick up to `limit` items. `cooling`: none, again at `next_at`. `stopped`: none, and no next alarm."""

    state: ZonesState
    kind: Literal["work", "cooling", "stopped"]
    limit: int = 0
    next_at: int | None = None


class Step(NamedTuple):
    state: ZonesState
    action: Action | Literal["idle", "discarded"]
    next_at: int | None  # None: no alarm is to be set


class Tick(NamedTuple):
    """Work under way."""

    generation: int
    started_at: int
    items: int


def wake(state: ZonesState, rules: Rules, *, now_ms: int) -> Wake:
    if not state.running:
        return Wake(state, "stopped")
    state = cooled(touched(state, rules, now_ms), state.cooldown.seen(now_ms))
    if state.cooldown.is_active(now_ms):
        return Wake(state, "cooling", next_at=state.cooldown_until)
    state = _left_cooldown(state, rules, now_ms)
    return Wake(state, "work", limit=state.current_batch_size)


def idle(state: ZonesState, rules: Rules, *, now_ms: int) -> Step:
    """Nothing to do: look more and more rarely. What was learnt stays as it is."""
    streak = state.idle_streak + 1
    longest = max(rules.idle_max_ms, state.current_interval_ms)
    wait = min(longest, state.current_interval_ms << min(streak, 32))
    state = changed(touched(state, rules, now_ms), idle_streak=streak)
    return Step(state, "idle", now_ms + wait if state.running else None)


def begin(state: ZonesState, items: int, *, now_ms: int) -> tuple[ZonesState, Tick]:
    state = changed(state, total_dispatched=state.total_dispatched + items, idle_streak=0, last_work_at=now_ms)
    return state, Tick(state.generation, now_ms, items)


def settle(state: ZonesState, rules: Rules, tick: Tick, tally: Tally, *, now_ms: int) -> Step:
    """Records what came of a tick and adapts to it."""
    if tick.generation != state.generation:
        return Step(state, "discarded", None)  # a reset came in between, and has set its own alarm
    state = touched(_recorded(state, tick, tally, now_ms), rules, now_ms)
    change = _change(state, rules, tick, tally, now_ms)
    if tally.outcomes:
        blocked = state.blocked_streak + 1 if _blocked(state, tally) else 0
        state = changed(state, blocked_streak=blocked, probation=False)
    state = changed(state, current_batch_size=change.batch_size, current_interval_ms=change.interval_ms)
    if change.action in ("halve", "critical_reset"):
        state = remeasured(state, now_ms)  # or the same failures would lower the pace again and again
    if change.cooldown_ms:
        state = cooled(state, Cooldown.trigger(now_ms, change.cooldown_ms))
        state = changed(state, blocked_streak=0)
    return Step(state, change.action, _after_work(state, rules, tick, now_ms))


def start(state: ZonesState, rules: Rules, *, now_ms: int) -> Step:
    state = remeasured(_left_cooldown(changed(state, running=True), rules, now_ms), now_ms)
    return Step(state, "hold", now_ms + START_AFTER_MS)


def stop(state: ZonesState) -> Step:
    """The alarm stays where it is, finds this, and sets no other."""
    return Step(changed(state, running=False), "hold", None)


def reset(state: ZonesState, rules: Rules, *, now_ms: int, keep_stopped: bool = False) -> Step:
    running = state.running or not keep_stopped
    new = fresh(rules, now_ms=now_ms, generation=state.generation + 1)
    return Step(changed(new, running=running), "hold", now_ms + START_AFTER_MS if running else None)


def tune(
    state: ZonesState,
    rules: Rules,
    *,
    now_ms: int,
    batch_size: object = None,
    interval_ms: object = None,
    pending_at: int | None = None,
) -> Step:
    """Sets what is given, on the rails. `pending_at` is the alarm that waits; a shorter interval moves it."""
    if batch_size is not None:
        state = changed(state, current_batch_size=rules.batch(_whole("batch_size", batch_size)))
    if interval_ms is not None:
        state = changed(state, current_interval_ms=rules.interval_ms(_whole("interval_ms", interval_ms)))
        if pending_at is not None and not state.cooldown.is_active(now_ms):
            pending_at = min(pending_at, now_ms + state.current_interval_ms)
    return Step(state, "hold", pending_at)


def _change(state: ZonesState, rules: Rules, tick: Tick, tally: Tally, now_ms: int) -> Adapted:
    size, interval = state.current_batch_size, state.current_interval_ms
    held = Adapted(size, interval, "hold")
    if not tally.outcomes:
        return held  # nothing new was learnt
    sample = measured(state, rules, now_ms)
    zone = held
    if sample.outcomes >= rules.sample_min:
        # Where the target sets the pace, larger batches would only come in larger lumps.
        capped = _allowed_at(rules, tick) >= now_ms + interval
        zone = adapt(size, interval, success_rate(sample), rules, capped=capped)
    if rules.plain_window or zone.action == "critical_reset":
        return zone
    if state.probation and not tally.completed:
        return critical(rules)
    if _blocked(state, tally):
        return critical(rules) if state.blocked_streak else halved(size, interval, rules)
    return zone


def _blocked(state: ZonesState, tally: Tally) -> bool:
    # The batch after a wall may be smaller than five, because the wall made it so.
    enough = tally.rate_limited >= (1 if state.blocked_streak else BLOCKED_MIN)
    return enough and tally.rate_limited * 100 >= tally.items * BLOCKED_PERCENT


def _recorded(state: ZonesState, tick: Tick, tally: Tally, now_ms: int) -> ZonesState:
    # Items that were begun and not ended, as when a tick is cancelled, are pending again and were never dispatched.
    state = changed(
        state,
        total_dispatched=state.total_dispatched - tick.items + tally.items,
        total_completed=state.total_completed + tally.completed,
        total_failed=state.total_failed + tally.failed,
        total_skipped=state.total_skipped + tally.skipped,
    )
    if not tally.outcomes:
        return state
    counts = Minute(tally.items, tally.completed, tally.failed)
    return changed(state, metrics=added(state.metrics, now_ms, counts))


def _after_work(state: ZonesState, rules: Rules, tick: Tick, now_ms: int) -> int | None:
    if not state.running:
        return None
    if state.cooldown.is_active(now_ms):
        return state.cooldown_until
    return max(now_ms + state.current_interval_ms, _allowed_at(rules, tick))


def _allowed_at(rules: Rules, tick: Tick) -> int:
    """When the target for the day allows the next tick."""
    return tick.started_at + rules.pause_for_target_ms(tick.items)


def _left_cooldown(state: ZonesState, rules: Rules, now_ms: int) -> ZonesState:
    if not state.cooldown_until:
        return state
    state = changed(cooled(state, Cooldown()), probation=not rules.plain_window)
    return remeasured(state, now_ms)


def _whole(name: str, value: object) -> int:
    if type(value) is not int:
        raise BadParameter(f"{name} is {value!r}. It has to be a whole number.", field=name, value=value)
    return value
