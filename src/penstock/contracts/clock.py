"""One time for one database: every due time, lease and schedule is measured on a `Clock`, never on the machine's own."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> int:
        """Microseconds since the epoch, UTC. It never runs back within a process.

        An integer, because a due time stored as a float fires early.
        """

    def monotonic(self) -> float:
        """Seconds since some moment, at a steady rate: for measuring how long something took or may take."""
