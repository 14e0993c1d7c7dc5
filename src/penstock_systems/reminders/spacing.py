"""Spaces calls evenly, for a provider that answers so many a second."""

from __future__ import annotations

from penstock_systems.reminders.app import web

MARGIN = 1.02  # the provider's clock is another one


class Spacing:
    """At most `rate` calls a second in this process."""

    def __init__(self, rate: float) -> None:
        self.seconds = MARGIN / rate
        self._next = 0.0

    @property
    def wait_seconds(self) -> float:
        """How long the next call would wait."""
        return max(0.0, self._next - web.clock.monotonic())

    def reserve(self) -> float:
        """Take the next place; return how many seconds it is away."""
        now = web.clock.monotonic()
        at = max(now, self._next)
        self._next = at + self.seconds
        return at - now
