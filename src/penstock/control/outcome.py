"""What became of a request, and whether the next one may start."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """What became of a request, as far as the rate is concerned."""

    OK = "ok"
    THROTTLED = "throttled"  # the service refused: 429, 403
    UNAVAILABLE = "unavailable"  # it failed or did not answer: 5xx, a timeout
    GONE = "gone"  # it answered that the item is not there
    UNPARSABLE = "unparsable"  # it answered something that cannot be read
    FAILED = "failed"  # something else went wrong, perhaps on this side


class Decision(msgspec.Struct, frozen=True):
    """Whether a request may start now. If not, when to ask again: at a time, or (None) when the next answer is in.

    `next_slot`: only the number in flight keeps the next one back. It may start with the next answer, if that is no
    refusal."""

    start: bool
    again_at: float | None
    parallel: int
    next_slot: bool = False
