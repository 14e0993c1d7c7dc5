"""What goes into a pilot, what comes out of it, and all it knows in between."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from penstock.control.ceiling import Ceiling
from penstock.control.doors import Door
from penstock.control.inflight import Flights
from penstock.control.quotas import Quota
from penstock.control.suspicion import Suspicion, Throttling


class Outcome(StrEnum):
    """What became of a request, as far as the pace is concerned."""

    OK = "ok"
    THROTTLED = "throttled"  # the service refused: 429, 403
    UNAVAILABLE = "unavailable"  # it failed or did not answer: 5xx, a timeout
    GONE = "gone"  # it answered that the item is not there
    UNPARSABLE = "unparsable"  # it answered something we cannot read
    FAILED = "failed"  # something else went wrong, perhaps on our side


ANSWERED = frozenset({Outcome.OK, Outcome.GONE, Outcome.UNPARSABLE})


class Decision(msgspec.Struct, frozen=True):
    """Whether one may start now. If not, when to ask again: at a time, or (None) when the next answer is in.

    `next_slot`: nothing but the number under way keeps the next one back. It may start with the next answer, if that is
    no refusal."""

    start: bool
    again_at: float | None
    parallel: int
    next_slot: bool = False


class PilotState(msgspec.Struct):
    """Everything a pilot knows, as plain values: saved as JSON and loaded elsewhere it decides the same."""

    rate_min: float = 0.001
    rate_max: float = 1_000.0
    parallel: int = 32
    due: float = 0.0  # when the next one may start
    waited: bool = False  # the next one waits for an answer
    refuses: bool = False  # it says so when we are too fast: what fails is not about the pace
    ceiling: Ceiling = msgspec.field(default_factory=Ceiling)
    door: Door = msgspec.field(default_factory=Door)
    flights: Flights = msgspec.field(default_factory=Flights)
    quota: Quota = msgspec.field(default_factory=Quota)
    throttling: Throttling = msgspec.field(default_factory=Throttling)
    unavailable: Suspicion = msgspec.field(default_factory=lambda: Suspicion(0.02, 0.25, 6.5, 0.002, 0.001))
    words: str = "nothing is known of the service yet"
    spoken: float = 0.0  # the pace that the words told of last
