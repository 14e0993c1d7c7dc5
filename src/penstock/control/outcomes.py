"""What an item's failure says: about the service, which lowers the pace, or about the item alone, which does not."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from penstock.model.errors import Permanent, Throttled, Unavailable, Unparsable
from penstock.model.retry import Retry

ATTEMPTS_MAX = 5  # a failure that may pass is tried this often, then the item is given up
RETRY = Retry(retries=ATTEMPTS_MAX - 1, first_seconds=60.0, longest_seconds=3_600.0)


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


def classify(error: BaseException) -> ErrorClass:
    """Told by the error's type or the status of the answer, never by its text: an id may hold 403 too."""
    match error:
        case Throttled():
            return ErrorClass.RATE_LIMIT
        case Unavailable():
            return ErrorClass.SERVER_ERROR
        case Unparsable():
            return ErrorClass.PARSE_ERROR
        case Permanent():
            return ErrorClass.NOT_FOUND  # Gone, or Refused for good: the same item will never be answered
        case _ if (status := _status(error)) is not None:
            return of_status(status)
        case TimeoutError():
            return ErrorClass.TIMEOUT
        case msgspec.DecodeError() | json.JSONDecodeError() | UnicodeDecodeError():
            return ErrorClass.PARSE_ERROR
        case _:
            return ErrorClass.UNKNOWN


def of_status(status: int) -> ErrorClass:
    if status in (403, 429):
        return ErrorClass.RATE_LIMIT
    if status in (408, 504):
        return ErrorClass.TIMEOUT
    if status in (404, 410):
        return ErrorClass.NOT_FOUND
    if 500 <= status <= 599:
        return ErrorClass.SERVER_ERROR
    # An error over a good answer is about what the answer held.
    return ErrorClass.PARSE_ERROR if 200 <= status <= 299 else ErrorClass.UNKNOWN


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


def next_try_seconds(error: ErrorClass, attempt: int) -> float | None:
    """How long the item waits before it is picked again, or None if it never is."""
    if error.of_the_item:
        return None
    # A closed door is nobody's fault: the item waits and is not given up for it.
    if error is not ErrorClass.RATE_LIMIT and RETRY.exhausted(attempt):
        return None
    return RETRY.delay_seconds(attempt)


def _status(error: BaseException) -> int | None:
    answer: Any = getattr(error, "response", None)
    for source in (error, answer):
        for name in ("status", "status_code", "code"):
            status = getattr(source, name, None)
            if isinstance(status, int) and not isinstance(status, bool) and 100 <= status <= 599:
                return status
    return None
