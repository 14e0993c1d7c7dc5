"""Which queue accepts a message type: a command has one receiver, an event has any number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.model.envelope import Command, Event
from penstock.model.errors import BadApp
from penstock.queues.queue import Queue


def check_addressees(queues: Mapping[str, Queue[Any]], queue: Queue[Any]) -> None:
    """A queue carries commands or events, and only one queue accepts a command."""
    accepted = {name: each for name, each in (queue.accepts or {}).items() if isinstance(each, type)}
    commands = [name for name, each in accepted.items() if issubclass(each, Command)]
    if commands and any(issubclass(each, Event) for each in accepted.values()):
        raise BadApp(
            f"Queue {queue.name!r} accepts commands and events. A command has one receiving queue; events "
            "go to a queue of events. Use two queues."
        )
    for other in queues.values():
        for name in commands:
            if name in (other.accepts or ()):
                raise BadApp(
                    f"The command {name!r} is accepted by queues {other.name!r} and {queue.name!r}. A command has one "
                    "receiving queue; make it an event if several queues need it."
                )
