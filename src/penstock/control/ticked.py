"""What a tick came to, in one line of the log."""

from __future__ import annotations

from typing import ClassVar

from penstock.control.flight import Tally
from penstock.control.pace import Pace
from penstock.runtime.events import EngineEvent


class ControllerTicked(EngineEvent, frozen=True):
    """A tick that did something, or was kept from it by a cooldown: what came of it, and how fast it goes on."""

    name: ClassVar[str] = "controller.ticked"
    controller: str
    succeeded: int
    total: int
    failed: int
    batch_size: int
    interval_ms: int
    cooldown_seconds: float


def ticked(name: str, before: Tally, after: Tally, pace: Pace, now: float) -> ControllerTicked | None:
    """None where there was nothing to do."""
    succeeded = after.completed - before.completed
    failed = after.failed - before.failed + after.throttled - before.throttled
    total = succeeded + failed + after.skipped - before.skipped
    cooldown = round(max(0.0, pace.closed_until - now), 1)
    if total <= 0 and not cooldown:
        return None
    return ControllerTicked(name, succeeded, total, failed, pace.batch_size, pace.interval_ms, cooldown)
