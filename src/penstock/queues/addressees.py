"""Who may be told what: a command has one addressee, an event is for whoever wants to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.model.envelope import Command, Event, type_name
from penstock.model.errors import BadApp
from penstock.queues.queue import Queue


def check_addressees(queues: Mapping[str, Queue], name: str, accepted: Sequence[type]) -> None:
    """A queue carries commands or events, and only one queue accepts a command."""
    commands = [each for each in accepted if issubclass(each, Command)]
    if commands and any(issubclass(each, Event) for each in accepted):
        raise BadApp(
            f"Queue {name!r} accepts commands and events. A command has one addressee with a queue of its own; events go "
            "to a queue of events. Use two queues."
        )
    for other in queues.values():
        for each in commands:
            if type_name(each) in (other.accepts or ()):
                raise BadApp(
                    f"The command {type_name(each)!r} is accepted by queues {other.name!r} and {name!r}. A command has one "
                    "addressee; make it an event if several want to know."
                )
