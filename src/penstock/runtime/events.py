"""What happens in the engine, as typed events. Logs, metrics and tests subscribe; the engine knows none of them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, dataclass_transform

import msgspec

from penstock.model.outcome import Again, Dead, Done, Settlement
from penstock.model.stack import failure_line, located, place_of

_log = logging.getLogger("penstock.events")


@dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class _EventMeta(msgspec.StructMeta):
    """Lets an event class give its name and level in its head, and makes it frozen."""

    def __new__(
        mcls,
        class_name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        name: str = "",
        level: str = "info",
    ) -> Any:
        made: Any = super().__new__(mcls, class_name, bases, namespace, frozen=True)
        made.name, made.level = name, level
        return made


class EngineEvent(msgspec.Struct, metaclass=_EventMeta):
    """`name` is noun.past-verb. `level`: error wakes a person, warning may become one, info is a life-cycle change."""

    name: ClassVar[str]
    level: ClassVar[str]

    def facts(self) -> dict[str, Any]:
        facts = {name: getattr(self, name) for name in self.__struct_fields__}
        return facts | {"place": place_of(facts["traceback"])} if "traceback" in facts else facts

    def line(self) -> str | None:
        """Return what a terminal shows of it instead of its facts, or None."""
        return None


class MessageReceived(EngineEvent, name="message.received", level="debug"):
    """A handler is about to run."""

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


class MessageSettled(EngineEvent, name="message.settled", level="debug"):
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


class MessageFailed(EngineEvent, name="message.failed", level="warning"):
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
        return _about_message(self, "failed", success=False)

    def line(self) -> str:
        return failure_line(self.handler or self.queue, self.error, self.traceback, self.attempt, self.wait_seconds)


class ItemFailed(EngineEvent, name="item.failed", level="warning"):
    controller: str
    item: str
    attempt: int
    error: str
    traceback: str | None
    wait_seconds: float | None

    def line(self) -> str:
        where = f"controller {self.controller}, item {self.item}"
        return failure_line(where, self.error, self.traceback, self.attempt, self.wait_seconds)


def _about_message(event: EngineEvent, action: str, **more: Any) -> dict[str, Any]:
    """What every line about a message has, in the words that dashboards look for."""
    facts = EngineEvent.facts(event)
    return {"action": action, "event_id": facts.pop("id"), **facts, **more}


class MessageDied(EngineEvent, name="message.died", level="error"):
    """A message has become a dead letter."""

    queue: str
    id: str
    type: str
    source: str
    attempts: int
    reason: str
    error: str | None
    correlation_id: str


class MessageWasLarge(EngineEvent, name="message.bulged", level="warning"):
    """Logged once for each type and process."""

    queue: str
    type: str
    bytes: int


class ChainGrewLong(EngineEvent, name="chain.grew", level="warning"):
    """More messages or commands follow from each other than expected. Warned of once per type and process."""

    queue: str
    type: str
    hops: int
    depth: int


class MessagesExpired(EngineEvent, name="messages.expired", level="warning"):
    """Messages, or dead letters, outlived their queue's retention."""

    messages: int
    dead: int


class LettersPiledUp(EngineEvent, name="letters.piled", level="error"):
    """A queue has more dead letters than a person would look through."""

    queue: str
    letters: int
    letters_max: int


class LettersAge(EngineEvent, name="letters.aged", level="error"):
    """Dead letters will expire in a day unless an operator resolves them."""

    queue: str
    letters: int


class TickWasIdle(EngineEvent, name="tick.idled", level="debug"):
    """A cron task looked for work and found none."""

    task: str
    rows_read: int


class TickFailed(EngineEvent, name="tick.failed", level="error"):
    task: str
    error: str
    traceback: str | None = None

    def line(self) -> str:
        return f"{self.task}: {located(self.error, self.traceback)}"


class CeilingReached(EngineEvent, name="ceiling.reached", level="error"):
    """A task is skipped until the next month. Logged once a month."""

    task: str
    used: str


class AlarmRang(EngineEvent, name="alarm.rang", level="debug"):
    """An object is about to hear its alarm, so long after the time it was set to."""

    object: str
    late_seconds: float


class StepsEnded(EngineEvent, name="steps.ended", level="debug"):
    """A run of a workflow has come as far as it comes for now: steps that were done, and that failed for good, on the way."""

    workflow: str
    done: int
    failed: int


class AlarmWasLost(EngineEvent, name="alarm.lost", level="error"):
    """An object's alarm has failed for the last time. It is parked: see its dead letter, and set it again."""

    object: str
    error: str | None


class PaceChanged(EngineEvent, name="pace.changed"):
    """A controller goes faster or slower, and why."""

    controller: str
    text: str
    rate_per_second: float


class LeaseWasLost(EngineEvent, name="lease.lost", level="warning"):
    queue: str
    id: str


class RowsReturned(EngineEvent, name="rows.returned", level="warning"):
    worker: int
    released: int
    suspected: int
    charged: int
    dead: int


class WorkerStarted(EngineEvent, name="worker.started"):
    worker: int
    database: str
    queues: list[str]


class WorkerStopped(EngineEvent, name="worker.stopped"):
    worker: int
    released: int


class WorkerDied(EngineEvent, name="worker.died", level="error"):
    worker: int
    pid: int
    exit_code: int


class HandlerOverran(EngineEvent, name="handler.overran", level="warning"):
    """A handler ended after its time limit: it blocked the event loop, so that it could not be cancelled. What it did is
    kept."""

    queue: str
    id: str
    handler: str
    seconds: float
    limit_seconds: float
    advice: str = "Run blocking code with ps.in_thread, or raise the queue's timeout=."


class QueuesRedeclared(EngineEvent, name="queues.redeclared", level="warning"):
    """An app declared queues with other settings than the database has. The last declaration holds: if two apps share a
    queue, import it from one place."""

    app: str
    changed: list[str]


class WorkerWasKilled(EngineEvent, name="worker.killed", level="error"):
    worker: int
    pid: int
    reason: str


class ClockJumped(EngineEvent, name="clock.jumped", level="warning"):
    by_seconds: float


class ClockWasAhead(EngineEvent, name="clock.differed", level="error"):
    """The database has seen a time far ahead of this clock. Set the clock right; if it is left alone for an hour, what
    waits is due that much sooner."""

    by_seconds: float


class StorageRanFull(EngineEvent, name="storage.filled", level="error"):
    database: str


class LogGrew(EngineEvent, name="log.grew", level="warning"):
    database: str
    bytes: int


class StoreFailed(EngineEvent, name="store.failed", level="error"):
    database: str
    error: str


class WakeUpsFailed(EngineEvent, name="wakeups.failed", level="warning"):
    """There is no folder for wake-up sockets: processes notice each other's sends by polling, within a second."""

    error: str


class ScanWasSlow(EngineEvent, name="scan.slowed", level="warning"):
    task: str
    sql: str
    rows_read: int


class SizeWatched(EngineEvent, name="size.crossed", level="warning"):
    database: str
    bytes: int
    cap_bytes: int | None
    days_left: float | None


# Awaits work of a kind (`step`, `request`) and name, and records it with its facts.
Tracer = Callable[[str, str, dict[str, str | int], Awaitable[Any]], Awaitable[Any]]


class Events:
    """Calls each subscriber in turn, on the thread that emits. A subscriber that raises is dropped, never the engine."""

    tracer: Tracer | None = None

    def __init__(self) -> None:
        self._everyone: list[Callable[[EngineEvent], None]] = []
        self._by_class: dict[type[EngineEvent], list[Callable[[Any], None]]] = {}

    def subscribe(self, subscriber: Callable[[Any], None], to: type[EngineEvent] | None = None) -> Callable[[], None]:
        """Starts telling `subscriber`; call what comes back to stop."""
        subscribers = self._everyone if to is None else self._by_class.setdefault(to, [])
        subscribers.append(subscriber)
        return lambda: subscribers.remove(subscriber) if subscriber in subscribers else None

    def wanted(self, kind: type[EngineEvent]) -> bool:
        """Whether there is a listener: events of single messages are only made for one."""
        return bool(self._everyone) or bool(self._by_class.get(kind))

    def emit(self, event: EngineEvent) -> None:
        for subscriber in [*self._everyone, *self._by_class.get(type(event), ())]:
            try:
                subscriber(event)
            except Exception:
                self._drop(subscriber)
                _log.exception("%r failed on %s and receives no more events.", subscriber, event.name)

    def _drop(self, subscriber: Callable[[Any], None]) -> None:
        for subscribers in (self._everyone, *self._by_class.values()):
            while subscriber in subscribers:
                subscribers.remove(subscriber)
