"""What happens in the engine, as typed events. Logs, metrics and tests subscribe; the engine knows none of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar

import msgspec

from penstock.model.outcome import Again, Dead, Done, Settlement
from penstock.model.stack import failure_line, place_of

_log = logging.getLogger("penstock.events")


class EngineEvent(msgspec.Struct, frozen=True):
    """`name` is noun.past-verb. `level`: error wakes a person, warning will if it goes on, info is a life-cycle change."""

    name: ClassVar[str] = ""
    level: ClassVar[str] = "info"

    def facts(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__struct_fields__}

    def line(self) -> str | None:
        """Return what a terminal shows of it instead of its facts, or None."""
        return None


class MessageReceived(EngineEvent, frozen=True):
    """A handler is about to run."""

    name: ClassVar[str] = "message.received"
    level: ClassVar[str] = "debug"
    queue: str
    id: str
    type: str
    attempt: int
    correlation_id: str
    source: str = ""
    queue_timestamp: str = ""
    processing_delay_ms: float = 0.0

    def facts(self) -> dict[str, Any]:
        return _about_message(self, "received")


class MessageSettled(EngineEvent, frozen=True):
    name: ClassVar[str] = "message.settled"
    level: ClassVar[str] = "debug"
    queue: str
    id: str
    type: str
    attempt: int
    settlement: Settlement
    correlation_id: str
    source: str = ""
    queue_timestamp: str = ""
    processing_delay_ms: float = 0.0

    def facts(self) -> dict[str, Any]:
        failure = getattr(self.settlement, "failure", None)
        failed = failure is not None or isinstance(self.settlement, Dead)
        return _about_message(
            self,
            "failed" if failed else "processed",
            success=isinstance(self.settlement, Done),
            error=None if failure is None else f"{failure.error_class}: {failure.message}",
            will_retry=isinstance(self.settlement, Again),
        )


class MessageFailed(EngineEvent, frozen=True):
    name: ClassVar[str] = "message.failed"
    level: ClassVar[str] = "warning"
    queue: str
    id: str
    type: str
    attempt: int
    error: str
    will_retry: bool
    correlation_id: str
    source: str = ""
    queue_timestamp: str = ""
    processing_delay_ms: float = 0.0
    handler: str = ""
    traceback: str | None = None
    wait_seconds: float | None = None

    def facts(self) -> dict[str, Any]:
        return _about_message(self, "failed", success=False, place=place_of(self.traceback))

    def line(self) -> str:
        return failure_line(self.handler or self.queue, self.error, self.traceback, self.attempt, self.wait_seconds)


def _about_message(event: EngineEvent, action: str, **more: Any) -> dict[str, Any]:
    """What every line about a message has, in the words that dashboards look for."""
    facts = EngineEvent.facts(event)
    return {"action": action, "event_id": facts.pop("id"), **facts, **more}


class MessageDied(EngineEvent, frozen=True):
    """A message has become a dead letter."""

    name: ClassVar[str] = "message.died"
    level: ClassVar[str] = "error"
    queue: str
    id: str
    type: str
    source: str
    attempts: int
    reason: str
    error: str | None
    correlation_id: str


class MessageWasLarge(EngineEvent, frozen=True):
    """Told once for each type and process."""

    name: ClassVar[str] = "message.bulged"
    level: ClassVar[str] = "warning"
    queue: str
    type: str
    bytes: int


class ChainGrewLong(EngineEvent, frozen=True):
    """More messages or commands follow from each other than expected. Warned of once per type and process."""

    name: ClassVar[str] = "chain.grew"
    level: ClassVar[str] = "warning"
    queue: str
    type: str
    hops: int
    depth: int


class MessagesExpired(EngineEvent, frozen=True):
    """Messages, or dead letters, outlived their queue's retention."""

    name: ClassVar[str] = "messages.expired"
    level: ClassVar[str] = "warning"
    messages: int
    dead: int


class LettersPiledUp(EngineEvent, frozen=True):
    """A queue has more dead letters than a person would look through."""

    name: ClassVar[str] = "letters.piled"
    level: ClassVar[str] = "error"
    queue: str
    letters: int
    letters_max: int


class LettersAge(EngineEvent, frozen=True):
    """Dead letters will expire in a day unless somebody deals with them."""

    name: ClassVar[str] = "letters.aged"
    level: ClassVar[str] = "error"
    queue: str
    letters: int


class TickWasIdle(EngineEvent, frozen=True):
    """A cron task looked for work and found none."""

    name: ClassVar[str] = "tick.idled"
    level: ClassVar[str] = "debug"
    task: str
    rows_read: int


class TickFailed(EngineEvent, frozen=True):
    name: ClassVar[str] = "tick.failed"
    level: ClassVar[str] = "error"
    task: str
    error: str


class CeilingReached(EngineEvent, frozen=True):
    """A task is skipped until the next month. Told once a month."""

    name: ClassVar[str] = "ceiling.reached"
    level: ClassVar[str] = "error"
    task: str
    used: str


class AlarmRang(EngineEvent, frozen=True):
    """An object is about to hear its alarm, so long after the time it was set to."""

    name: ClassVar[str] = "alarm.rang"
    level: ClassVar[str] = "debug"
    object: str
    late_seconds: float


class StepsEnded(EngineEvent, frozen=True):
    """A run of a workflow has come as far as it comes for now: steps that were done, and that failed for good, on the way."""

    name: ClassVar[str] = "steps.ended"
    level: ClassVar[str] = "debug"
    workflow: str
    done: int
    failed: int


class AlarmWasLost(EngineEvent, frozen=True):
    """An object's alarm has failed for the last time. It is parked: see its dead letter, and set it again."""

    name: ClassVar[str] = "alarm.lost"
    level: ClassVar[str] = "error"
    object: str
    error: str | None


class PaceChanged(EngineEvent, frozen=True):
    """A controller goes faster or slower, and why."""

    name: ClassVar[str] = "pace.changed"
    controller: str
    text: str
    rate_per_second: float


class LeaseWasLost(EngineEvent, frozen=True):
    name: ClassVar[str] = "lease.lost"
    level: ClassVar[str] = "warning"
    queue: str
    id: str


class RowsReturned(EngineEvent, frozen=True):
    name: ClassVar[str] = "rows.returned"
    level: ClassVar[str] = "warning"
    worker: int
    released: int
    suspected: int
    charged: int
    dead: int


class WorkerStarted(EngineEvent, frozen=True):
    name: ClassVar[str] = "worker.started"
    worker: int
    database: str
    queues: list[str]


class WorkerStopped(EngineEvent, frozen=True):
    name: ClassVar[str] = "worker.stopped"
    worker: int
    handed_back: int


class WorkerDied(EngineEvent, frozen=True):
    name: ClassVar[str] = "worker.died"
    level: ClassVar[str] = "error"
    worker: int
    pid: int
    exit_code: int


class HandlerOverran(EngineEvent, frozen=True):
    """A handler ended after its time limit: it blocked the event loop, so that it could not be cancelled. What it did is
    kept."""

    name: ClassVar[str] = "handler.overran"
    level: ClassVar[str] = "warning"
    queue: str
    id: str
    handler: str
    seconds: float
    limit_seconds: float
    advice: str = "Run blocking code with ps.in_thread, or raise the queue's wall=."


class QueuesRedeclared(EngineEvent, frozen=True):
    """An app declared queues with other settings than the database has. The last declaration holds: if two apps share a
    queue, import it from one place."""

    name: ClassVar[str] = "queues.redeclared"
    level: ClassVar[str] = "warning"
    app: str
    changed: list[str]


class WorkerWasKilled(EngineEvent, frozen=True):
    name: ClassVar[str] = "worker.killed"
    level: ClassVar[str] = "error"
    worker: int
    pid: int
    reason: str


class ClockJumped(EngineEvent, frozen=True):
    name: ClassVar[str] = "clock.jumped"
    level: ClassVar[str] = "warning"
    by_seconds: float


class ClockWasAhead(EngineEvent, frozen=True):
    """The database has seen a time far ahead of this clock. Set the clock right; if it is left alone for an hour, what
    waits is due that much sooner."""

    name: ClassVar[str] = "clock.differed"
    level: ClassVar[str] = "error"
    by_seconds: float


class StorageRanFull(EngineEvent, frozen=True):
    name: ClassVar[str] = "storage.filled"
    level: ClassVar[str] = "error"
    database: str


class LogGrew(EngineEvent, frozen=True):
    name: ClassVar[str] = "log.grew"
    level: ClassVar[str] = "warning"
    database: str
    bytes: int


class StoreFailed(EngineEvent, frozen=True):
    name: ClassVar[str] = "store.failed"
    level: ClassVar[str] = "error"
    database: str
    error: str


class WakeUpsFailed(EngineEvent, frozen=True):
    """There is no folder for wake-up sockets: processes notice each other's sends by polling, within a second."""

    name: ClassVar[str] = "wakeups.failed"
    level: ClassVar[str] = "warning"
    error: str


class ScanWasSlow(EngineEvent, frozen=True):
    name: ClassVar[str] = "scan.slowed"
    level: ClassVar[str] = "warning"
    task: str
    sql: str
    rows_read: int


class SizeWatched(EngineEvent, frozen=True):
    name: ClassVar[str] = "size.crossed"
    level: ClassVar[str] = "warning"
    database: str
    bytes: int
    cap_bytes: int | None
    days_left: float | None


class Events:
    """Calls each subscriber in turn, on the thread that emits. A subscriber that raises is dropped, never the engine."""

    def __init__(self) -> None:
        self._everyone: list[Callable[[EngineEvent], None]] = []
        self._by_class: dict[type[EngineEvent], list[Callable[[Any], None]]] = {}

    def subscribe(self, subscriber: Callable[[Any], None], to: type[EngineEvent] | None = None) -> Callable[[], None]:
        """Starts telling `subscriber`; call what comes back to stop."""
        subscribers = self._everyone if to is None else self._by_class.setdefault(to, [])
        subscribers.append(subscriber)
        return lambda: subscribers.remove(subscriber) if subscriber in subscribers else None

    def wanted(self, kind: type[EngineEvent]) -> bool:
        """Whether anybody listens: what happens per message is only put into words then."""
        return bool(self._everyone) or bool(self._by_class.get(kind))

    def emit(self, event: EngineEvent) -> None:
        for subscriber in [*self._everyone, *self._by_class.get(type(event), ())]:
            try:
                subscriber(event)
            except Exception:
                self._drop(subscriber)
                _log.exception("%r raised at %s and is not told of anything any more.", subscriber, event.name)

    def _drop(self, subscriber: Callable[[Any], None]) -> None:
        for subscribers in (self._everyone, *self._by_class.values()):
            while subscriber in subscribers:
                subscribers.remove(subscriber)
