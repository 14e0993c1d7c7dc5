"""Alerts: what a person should know about dead letters, handed to whatever sink the app names. A sink that fails is logged
and holds nothing up."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.runtime.events import EngineEvent, LettersAge, LettersPiledUp, MessageDied

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.worker import Worker

PENDING_MAX = 100  # alerts on their way; a flood is told as a number
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


def alert_of(event: EngineEvent) -> Alert | None:
    match event:
        case MessageDied():
            text = (
                f"{event.type} from {event.source} died on {event.queue} after {event.attempts} "
                f"attempt{'' if event.attempts == 1 else 's'} ({event.reason}): {event.id}"
            )
            return Alert(event.name, text, event.facts())
        case LettersAge():
            text = f"{event.letters} dead letters of {event.queue} expire within a day. Replay or discard them."
            return Alert(event.name, text, event.facts())
        case LettersPiledUp():
            text = f"{event.queue} has {event.letters:,} dead letters, more than {event.letters_max:,}. Look for one cause."
            return Alert(event.name, text, event.facts())
    return None


class Alerts:
    """Listens while a worker runs."""

    def __init__(self, worker: Worker, engine: Engine, sinks: list[Sink]) -> None:
        self._worker = worker
        self._sinks = sinks
        self._pending = 0
        self._left_out = 0
        self.leave = engine.events.subscribe(self._heard)

    def _heard(self, event: EngineEvent) -> None:
        alert = alert_of(event)
        if alert is None:
            return
        if self._pending >= PENDING_MAX:
            self._left_out += 1
            return
        if self._left_out:
            facts = alert.facts | {"left_out": self._left_out}
            alert = Alert(alert.kind, f"{alert.text} (and {self._left_out} more alerts before it)", facts)
            self._left_out = 0
        for sink in self._sinks:
            self._pending += 1
            self._worker.spawn(self._hand_over(sink, alert))

    async def _hand_over(self, sink: Sink, alert: Alert) -> None:
        try:
            await sink(alert)
        except Exception:
            _log.exception("The alert sink %r failed; the alert was: %s", sink, alert.text)
        finally:
            self._pending -= 1
