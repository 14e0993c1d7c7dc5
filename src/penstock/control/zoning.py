"""The zones as a controller runs them: loaded from saved state, within their rails, and able to say what they do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.control.outcome import Decision
from penstock.control.zones_state import Rules, ZonesState, fresh, load
from penstock.control.zones_tick import ErrorClass, Step, Tick, begin, idle, settle, start, tally, tune, wake
from penstock.model.errors import BadMessage

# The pilot's words for how an item ended, beside the error classes' own.
_ENDINGS: dict[str, ErrorClass | None] = {
    **{str(error): error for error in ErrorClass},
    "ok": None,
    "throttled": ErrorClass.RATE_LIMIT,
    "unavailable": ErrorClass.SERVER_ERROR,
    "gone": ErrorClass.NOT_FOUND,
    "unparsable": ErrorClass.PARSE_ERROR,
    "failed": ErrorClass.UNKNOWN,
}


class Zones:
    """Times are seconds. What a crash loses is the batch under way: the state is whole after each one."""

    def __init__(self, state: ZonesState | None = None, rules: Rules | None = None, *, now: float = 0.0) -> None:
        self.rules = rules or Rules()
        self.state = state or fresh(self.rules, now_ms=_ms(now))
        self.due_ms: int | None = 0  # the next tick; None while stopped
        self._tick: Tick | None = None
        self._left = 0  # items this batch may still start
        self._chunk_left = 0
        self._chunk_at = 0.0
        self._under_way: set[int] = set()
        self._ended: list[ErrorClass | None] = []
        self._tickets = 0

    def apply(self, step: Step) -> None:
        """Takes over what `start`, `stop`, `reset` or `tune` gave. A step without an alarm leaves the one that is set."""
        self.state = step.state
        if step.next_at is not None:
            self.due_ms = step.next_at

    def next(self, now: float) -> Decision:
        if self._tick is not None and self._tick.generation != self.state.generation:
            self.none_left(now)  # a reset: what is under way ends, and counts for nothing
        if self._tick is None and not self._opened(now):
            return self._later(None if self.due_ms is None else self.due_ms / 1_000)
        if not self._left or (not self._chunk_left and self._under_way):
            return self._later(None)
        if not self._chunk_left:
            if now < self._chunk_at:
                return self._later(self._chunk_at)
            self._chunk_left = self.rules.parallel
        return Decision(True, now, self.rules.parallel)

    def started(self, now: float) -> int:
        assert self._tick is not None
        assert self._left > 0
        self.state, _ = begin(self.state, 1, now_ms=_ms(now))
        self._tick = self._tick._replace(items=self._tick.items + 1)
        self._left -= 1
        self._chunk_left -= 1
        self._tickets += 1
        self._under_way.add(self._tickets)
        return self._tickets

    def finished(
        self,
        now: float,
        ticket: int,
        outcome: str,
        *,
        latency: float = 0.0,
        retry_after: float | None = None,
        item: str | None = None,
    ) -> None:
        self._under_way.remove(ticket)
        self._ended.append(_ENDINGS[str(outcome)])
        if not self._under_way:
            self._chunk_at = now + self.rules.chunk_pause_ms / 1_000
            if not self._left:
                self._close(now)

    def none_left(self, now: float) -> None:
        """There is no item to start: the batch ends with what it has."""
        self._left = 0
        if self._tick is not None and not self._under_way:
            self._close(now)

    def _opened(self, now: float) -> bool:
        if self.due_ms is not None and _ms(now) < self.due_ms:
            return False
        woken = wake(self.state, self.rules, now_ms=_ms(now))
        self.state, self.due_ms = woken.state, woken.next_at
        if woken.kind != "work":
            return False
        self._tick = Tick(self.state.generation, _ms(now), 0)
        self._left, self._chunk_left, self._ended = woken.limit, self.rules.parallel, []
        return True

    def _close(self, now: float) -> None:
        assert self._tick is not None
        tick, self._tick = self._tick, None
        if tick.items:
            step = settle(self.state, self.rules, tick, tally(self._ended), now_ms=_ms(now))
        else:
            step = idle(self.state, self.rules, now_ms=_ms(now))
        self.state = step.state
        if step.action != "discarded":
            self.due_ms = step.next_at

    def _later(self, at: float | None) -> Decision:
        return Decision(False, at, self.rules.parallel)


def _ms(now: float) -> int:
    return math.floor(now * 1_000 + 1e-6)  # a due time turned into seconds and back must not come out a little early


class ZonesPace(Zones):
    def __init__(self, saved: dict[str, Any], *, parallel: int, now: float) -> None:
        rules = Rules(parallel=parallel)
        super().__init__(load(saved["state"], rules, now_ms=int(now * 1_000)) if saved else None, rules, now=now)
        self.due_ms = saved.get("due_ms", 0) if saved else 0
        self._before = (self.batch_size, self.interval_ms)
        self._words = str(saved.get("words", "")) if saved else ""

    def finished(
        self,
        now: float,
        ticket: int,
        outcome: str,
        *,
        latency: float = 0.0,
        retry_after: float | None = None,
        item: str | None = None,
    ) -> None:
        super().finished(now, ticket, outcome, latency=latency, retry_after=retry_after, item=item)
        after = (self.batch_size, self.interval_ms)
        if after != self._before:
            (batch, interval), (new_batch, new_interval) = self._before, after
            self._words = f"batch {batch} to {new_batch}, every {interval / 1000:g} to {new_interval / 1000:g} s"
            self._before = after

    def explain(self, now: float) -> str:
        return self._words

    @property
    def words(self) -> str:
        return self._words

    @property
    def rate_per_second(self) -> float:
        return self.batch_size / max(0.001, self.interval_ms / 1_000)

    @property
    def batch_size(self) -> int:
        return self.state.current_batch_size

    @property
    def interval_ms(self) -> int:
        return self.state.current_interval_ms

    @property
    def closed_until(self) -> float:
        return self.state.cooldown_until / 1_000

    def restarted(self, now: float) -> None:
        step = start(self.state, self.rules, now_ms=int(now * 1_000))
        self.state, self.due_ms = step.state, step.next_at

    def tune(self, now: float, wanted: Mapping[str, object]) -> None:
        unknown = wanted.keys() - {"batch_size", "interval_ms"}
        if unknown:
            raise BadMessage(
                f"The mode zones has no setting {', '.join(sorted(unknown))}; it has batch_size and interval_ms."
            )
        step = tune(self.state, self.rules, now_ms=int(now * 1_000), pending_at=self.due_ms, **dict(wanted))
        self.state, self.due_ms = step.state, step.next_at

    def saved(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self.state, str_keys=True)
        return {"state": plain, "due_ms": self.due_ms, "words": self._words}
