"""An alert: one line for a person, the same facts for a machine, and which of the engine's events are worth one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from penstock.channels.channel import Channel, Notice
from penstock.model.times import to_micros
from penstock.runtime.events import AlarmWasLost, CeilingReached, EngineEvent, LettersAge, LettersPiledUp, MessageDied

MACHINE, AGENT = "dlq-monitor", "queue-monitor"
RAISED, RECOVERED = "condition.raised", "condition.recovered"


@dataclass(frozen=True, slots=True)
class Alert:
    """`text` says it all in one line; `facts` are the same for a machine. `id` is the same for every retry of a sink."""

    __message_type__: ClassVar[str] = "penstock.alert"
    kind: str
    text: str
    facts: dict[str, object] = field(default_factory=dict)
    machine: str = MACHINE
    agent: str = AGENT
    title: str = ""
    condition: str | None = None
    at: str = ""  # when it was raised
    id: str = ""

    @property
    def subject(self) -> str:
        """One line that can head a mail."""
        return self.notice.subject

    @property
    def notice(self) -> Notice:
        """What a channel sends of it."""
        moment = to_micros(datetime.fromisoformat(self.at)) if self.at else 0
        facts = {"condition": self.condition, "facts": self.facts}
        return Notice(self.title or self.text, self.text, kind=self.kind, data=facts, at=moment)


Sink = Callable[[Alert], Awaitable[object]] | Channel
ALERTED = (MessageDied, LettersAge, LettersPiledUp, CeilingReached, AlarmWasLost)


def alert_of(event: EngineEvent) -> Alert | None:
    match event:
        case MessageDied():
            text = (
                f"{event.type} from {event.source} became a dead letter of {event.queue} after {event.attempts} "
                f"attempt{'' if event.attempts == 1 else 's'} ({event.reason}): {event.id}"
            )
            return Alert(event.name, text, event.facts(), title=f"A message of {event.queue} became a dead letter")
        case CeilingReached():
            text = f"{event.task} is skipped for the rest of the month: {event.used}"
            return Alert(event.name, text, event.facts(), title=f"{event.task} has reached its ceiling")
        case AlarmWasLost():
            text = f"The alarm of {event.object} failed for the last time: {event.error}"
            return Alert(event.name, text, event.facts(), title=f"The alarm of {event.object} is lost")
        case LettersAge():
            text = f"{event.letters} dead letters of {event.queue} expire within a day. Replay or discard them."
            return Alert(event.name, text, event.facts(), title=f"Dead letters of {event.queue} expire soon")
        case LettersPiledUp():
            text = f"{event.queue} has {event.letters:,} dead letters, more than {event.letters_max:,}. Look for one cause."
            return Alert(event.name, text, event.facts(), title=f"Dead letters of {event.queue} pile up")
    return None
