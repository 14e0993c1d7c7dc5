"""What a handler answers, and the settlement that follows from it."""

from __future__ import annotations

import msgspec

from penstock.model.errors import (
    BadMessage,
    BadParameter,
    BudgetSpent,
    LoopBroken,
    PenstockError,
    Permanent,
    QueueFull,
    StorageFull,
    Throttled,
    TooLarge,
    Unavailable,
)
from penstock.model.redaction import redacted
from penstock.model.retry import Retry
from penstock.model.stack import rendered
from penstock.model.times import Span, in_seconds

_STORAGE_FULL_WAIT_SECONDS = 10.0  # long enough for an operator to free space, short enough to continue by itself
_QUEUE_FULL_WAIT_SECONDS = 5.0  # a consumer ahead is behind; it gets this long before the same sends are retried


class Later(msgspec.Struct, frozen=True):
    """Returned by a handler: deliver this again after `seconds`. No attempt is charged."""

    seconds: Span


class Discard(msgspec.Struct, frozen=True):
    """Returned by a handler: this message can never succeed. It becomes a dead letter with this reason."""

    reason: str


class RetryRequested(PenstockError):
    """The handler asked for another attempt."""

    def __init__(self, delay: Span | None = None) -> None:
        self.delay = delay
        super().__init__(delay=delay)


class Failure(msgspec.Struct, frozen=True):
    """The error that a settlement records."""

    error_class: str
    message: str
    traceback: str | None = None


class Done(msgspec.Struct, frozen=True):
    """The message is finished and its row goes."""


class Again(msgspec.Struct, frozen=True):
    """The message is released and due after this delay."""

    seconds: float
    charged: bool = True
    failure: Failure | None = None


class Dead(msgspec.Struct, frozen=True):
    """The message becomes a dead letter. `reason` is one word that groups, `failure` tells the story."""

    reason: str
    failure: Failure | None = None
    charged: bool = True


class Split(msgspec.Struct, frozen=True):
    """The message becomes one row per handler of its type, each with its own retry state."""

    handlers: tuple[str, ...]


class Held(msgspec.Struct, frozen=True):
    """The message has not begun and stays with its worker, leased for this long from now."""

    seconds: float


Settlement = Done | Again | Dead | Split | Held

DONE = Done()
RELEASED = Again(0.0, charged=False)

ERROR_TEXT_MAX = 2_000  # characters of an error that are kept; the rest is in the log


def settle(outcome: object, *, attempt: int, retry: Retry, share: float = 1.0) -> Settlement:
    """The settlement that a handler's answer, or its exception, leads to. `share` is a draw from 0 to 1, for jitter."""
    match outcome:
        case None:
            return DONE
        case Later(seconds):
            return Again(max(0.0, in_seconds(seconds)), charged=False)
        case Discard(reason):
            return Dead("discarded", Failure("Discard", reason[:ERROR_TEXT_MAX]))
        case BudgetSpent(until=None):
            return Dead("permanent", describe(outcome))
        case Throttled() | Unavailable() | BudgetSpent():
            wait = outcome.retry_after
            wait = retry.delay_seconds(attempt, share) if wait is None else max(0.0, wait)
            return Again(wait, charged=False, failure=describe(outcome))
        case QueueFull():
            return Again(_QUEUE_FULL_WAIT_SECONDS, charged=False, failure=describe(outcome))
        case StorageFull():
            return Again(_STORAGE_FULL_WAIT_SECONDS, charged=False, failure=describe(outcome))
        case LoopBroken():
            return Dead("loop", describe(outcome))
        case Permanent() | BadMessage() | BadParameter() | TooLarge():  # the mistakes would be made again
            return Dead("permanent", describe(outcome))
        case BaseException() if retry.exhausted(attempt):
            return Dead("exhausted", describe(outcome))
        case RetryRequested() if outcome.delay is not None:
            return Again(max(0.0, in_seconds(outcome.delay)), failure=describe(outcome))
        case BaseException():
            return Again(retry.delay_seconds(attempt, share), failure=describe(outcome))
        case _:
            return DONE


def describe(error: BaseException) -> Failure:
    text = str(error) or type(error).__name__
    notes = getattr(error, "__notes__", None)
    if notes:
        text = "\n".join([text, *notes])
    return Failure(type(error).__qualname__, redacted(text)[:ERROR_TEXT_MAX], rendered(error))
