"""Alerts: what a person should know about dead letters, handed to whatever sink the app names. A sink that fails is logged
and holds nothing up."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.runtime.events import (
    AlarmWasLost,
    CeilingReached,
    EngineEvent,
    LettersAge,
    LettersPiledUp,
    MessageDied,
    WorkerStarted,
)

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.worker import Worker

PENDING_MAX = 100  # alerts on their way; a flood is told as a number
SINK_SECONDS = 30.0  # what a sink gets: one that never answers would keep its worker from stopping
MACHINE, AGENT = "dlq-monitor", "queue-monitor"

_log = logging.getLogger("penstock.alerts")


@dataclass(frozen=True, slots=True)
class Alert:
    """`text` says it all in one line; `facts` are the same for a machine."""

    kind: str
    text: str
    facts: dict[str, object]
    machine: str = MACHINE
    agent: str = AGENT


Sink = Callable[[Alert], Awaitable[object]]
ALERTED = (MessageDied, LettersAge, LettersPiledUp, CeilingReached, AlarmWasLost)


def alert_of(event: EngineEvent) -> Alert | None:
    match event:
        case MessageDied():
            text = (
                f"{event.type} from {event.source} died on {event.queue} after {event.attempts} "
                f"attempt{'' if event.attempts == 1 else 's'} ({event.reason}): {event.id}"
            )
            return Alert(event.name, text, event.facts())
        case CeilingReached():
            return Alert(event.name, f"{event.task} is skipped for the rest of the month: {event.used}", event.facts())
        case AlarmWasLost():
            return Alert(
                event.name, f"The alarm of {event.object} failed for the last time: {event.error}", event.facts()
            )
        case LettersAge():
            text = f"{event.letters} dead letters of {event.queue} expire within a day. Replay or discard them."
            return Alert(event.name, text, event.facts())
        case LettersPiledUp():
            text = f"{event.queue} has {event.letters:,} dead letters, more than {event.letters_max:,}. Look for one cause."
            return Alert(event.name, text, event.facts())
    return None


class Alerts:
    """Listens while a worker runs. What it hears before that, of messages that killed a worker, waits for its start."""

    def __init__(self, worker: Worker, engine: Engine, sinks: list[Sink]) -> None:
        self._worker = worker
        self._sinks = sinks
        self._pending = 0
        self._left_out = 0
        self._early: list[Callable[[], Coroutine[Any, Any, None]]] | None = []
        kinds = (*ALERTED, WorkerStarted) if sinks else ()
        self._leaves = [engine.events.subscribe(self._heard, to=kind) for kind in kinds]

    def leave(self) -> None:
        for leave in self._leaves:
            leave()

    def _heard(self, event: EngineEvent) -> None:
        match event:
            case WorkerStarted():
                early, self._early = self._early or [], None
                for work in early:
                    self._start(work)
            case _:
                alert = alert_of(event)
                if alert is not None:
                    self._tell(alert)

    def _tell(self, alert: Alert) -> None:
        if self._pending >= PENDING_MAX:
            self._left_out += 1
            return
        if self._left_out:
            facts = alert.facts | {"left_out": self._left_out}
            alert = Alert(alert.kind, f"{alert.text} (and {self._left_out} more alerts before it)", facts)
            self._left_out = 0
        for sink in self._sinks:
            self._pending += 1
            self._start(partial(self._hand_over, sink, alert))

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._early is not None:
            self._early.append(work)
            return
        coroutine = work()
        try:
            self._worker.spawn(coroutine)
        except RuntimeError:  # the worker has ended; what it did last is in the log
            coroutine.close()

    async def _hand_over(self, sink: Sink, alert: Alert) -> None:
        try:
            async with asyncio.timeout(SINK_SECONDS):
                await sink(alert)
        except Exception:
            _log.exception("The alert sink %r failed; the alert was: %s", sink, alert.text)
        finally:
            self._pending -= 1
        if self._left_out and not self._pending:
            text = f"{self._left_out} more alerts came faster than they could be told. `penstock dead list` shows all."
            facts: dict[str, object] = {"left_out": self._left_out}
            self._left_out = 0
            self._tell(Alert("alerts.left_out", text, facts))
