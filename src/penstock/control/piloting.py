"""The pilot as a controller runs it: loaded from saved state, and within its rails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from penstock.control.pilot import Pilot, PilotState
from penstock.model.errors import BadMessage


class PilotPace(Pilot):
    def __init__(self, saved: dict[str, Any], *, rate: tuple[float, float], parallel: int) -> None:
        super().__init__(_loaded(saved))
        self.state.rate_min, self.state.rate_max = rate
        self.state.parallel = parallel

    def none_left(self, now: float) -> None:
        """Nothing to start is no reason to change the pace."""

    @property
    def batch_size(self) -> int:
        """How many may be under way: what comes nearest to a batch."""
        return self.state.parallel

    @property
    def interval_ms(self) -> int:
        return round(1_000 / self.rate_per_second) if self.rate_per_second else 0

    @property
    def closed_until(self) -> float:
        return self.state.door.hold_until

    def restarted(self, now: float) -> None:
        self.state.door.hold_until = 0.0
        self.state.due = now

    def tune(self, now: float, wanted: Mapping[str, object]) -> None:
        unknown = wanted.keys() - {"rate", "parallel"}
        if unknown:
            raise BadMessage(f"A pilot has no {', '.join(sorted(unknown))} to tune; it has rate and parallel.")
        state = self.state
        if "rate" in wanted:
            state.rate_max = max(state.rate_min, _number("rate", wanted["rate"]))
        if "parallel" in wanted:
            state.parallel = max(1, int(_number("parallel", wanted["parallel"])))
        self.state.due = min(self.state.due, now)

    def saved(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self.state, str_keys=True)
        return plain


def _number(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e9:
        raise BadMessage(f"{name} is {value!r}; give a number above 0.")
    return float(value)


def _loaded(saved: dict[str, Any]) -> PilotState | None:
    """What was under way when it was saved is not any more; what does not fit is begun anew."""
    if not saved:
        return None
    try:
        state = msgspec.convert(saved, PilotState, str_keys=True)
    except msgspec.ValidationError:
        return None
    state.flights.under_way.clear()
    return state
