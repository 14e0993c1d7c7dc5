"""The zones as a controller runs them: loaded from saved state, within their rails, and able to say what they do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.control.pilot import Decision, Outcome
from penstock.control.zones import Rules
from penstock.control.zones_pace import Zones
from penstock.control.zones_state import load
from penstock.control.zones_tick import start, tune
from penstock.model.errors import BadMessage


class ZonesPace:
    def __init__(self, saved: dict[str, Any], *, parallel: int, now: float) -> None:
        self.rules = Rules(parallel=parallel)
        state = load(saved["state"], self.rules, now_ms=int(now * 1_000)) if saved else None
        self._zones = Zones(state, self.rules, now=now)
        self._zones.due_ms = saved.get("due_ms", 0) if saved else 0
        self._before = (self._zones.state.current_batch_size, self._zones.state.current_interval_ms)
        self._words = str(saved.get("words", "")) if saved else ""

    def next(self, now: float) -> Decision:
        decided = self._zones.next(now)
        return Decision(decided.start, decided.again_at, decided.parallel)

    def started(self, now: float) -> int:
        return self._zones.started(now)

    def finished(
        self,
        now: float,
        ticket: int,
        outcome: Outcome,
        *,
        latency: float,
        retry_after: float | None = None,
        item: str | None = None,
    ) -> None:
        self._zones.finished(now, ticket, outcome, latency=latency, retry_after=retry_after, item=item)
        state = self._zones.state
        after = (state.current_batch_size, state.current_interval_ms)
        if after != self._before:
            (batch, interval), (new_batch, new_interval) = self._before, after
            self._words = f"batch {batch} to {new_batch}, every {interval / 1000:g} to {new_interval / 1000:g} s"
            self._before = after

    def none_left(self, now: float) -> None:
        self._zones.none_left(now)

    def explain(self) -> str:
        return self._words

    @property
    def rate_per_second(self) -> float:
        return self.batch_size / max(0.001, self.interval_ms / 1_000)

    @property
    def batch_size(self) -> int:
        return self._zones.state.current_batch_size

    @property
    def interval_ms(self) -> int:
        return self._zones.state.current_interval_ms

    @property
    def closed_until(self) -> float:
        return self._zones.state.cooldown_until / 1_000

    def restarted(self, now: float) -> None:
        step = start(self._zones.state, self.rules, now_ms=int(now * 1_000))
        self._zones.state, self._zones.due_ms = step.state, step.next_at

    def tune(self, now: float, wanted: Mapping[str, object]) -> None:
        unknown = wanted.keys() - {"batch_size", "interval_ms"}
        if unknown:
            raise BadMessage(
                f"Zones have no {', '.join(sorted(unknown))} to tune; they have batch_size and interval_ms."
            )
        step = tune(
            self._zones.state, self.rules, now_ms=int(now * 1_000), pending_at=self._zones.due_ms, **dict(wanted)
        )
        self._zones.state, self._zones.due_ms = step.state, step.next_at

    def saved(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self._zones.state, str_keys=True)
        return {"state": plain, "due_ms": self._zones.due_ms, "words": self._words}
