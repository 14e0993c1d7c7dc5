"""What an item's failure says: about the service, which lowers the pace, or about the item alone, which does not."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

import msgspec


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
