"""An alert: one line for a person, the same facts for a machine, and which of the engine's events are worth one."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.runtime.events import (
    AlarmWasLost,
    CeilingReached,
    EngineEvent,
    LettersAge,
    LettersPiledUp,
    MessageDied,
)

MACHINE, AGENT = "dlq-monitor", "queue-monitor"
RAISED, RECOVERED = "condition.raised", "condition.recovered"
TITLE_CHARACTERS_MAX = 200
TEXT_CHARACTERS_MAX = 8_000  # what a mail, a chat and a webhook of 20 kB all take
_UNSEEN = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Alert:
    """`text` says it all in one line; `facts` are the same for a machine. `id` is the same whenever a sink is tried again."""

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
        return _UNSEEN.sub(" ", self.title or self.text).strip()[:TITLE_CHARACTERS_MAX]


Sink = Callable[[Alert], Awaitable[object]]
ALERTED = (MessageDied, LettersAge, LettersPiledUp, CeilingReached, AlarmWasLost)


def alert_of(event: EngineEvent) -> Alert | None:
    match event:
        case MessageDied():
            text = (
                f"{event.type} from {event.source} died on {event.queue} after {event.attempts} "
                f"attempt{'' if event.attempts == 1 else 's'} ({event.reason}): {event.id}"
            )
            return Alert(event.name, text, event.facts(), title=f"A message died on {event.queue}")
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
