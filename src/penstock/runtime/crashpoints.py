"""Crash points in real processes: PENSTOCK_CRASH_AT says where this one is to die, stop, or see its disk fail."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count

from penstock.contracts.faults import Faults, NoFaults, known_point
from penstock.model.errors import BadConfig, StoreError

VARIABLE = "PENSTOCK_CRASH_AT"
HOW_TO = (
    f"{VARIABLE} is a list like `commit.before=kill,handler.after=stop@3`: a crash point, what happens there "
    "(kill, stop or eio), and the time it is reached, the first if nothing is said."
)


def faults_from_environment(environ: Mapping[str, str]) -> Faults:
    """What the variable asks for; nothing where it is not set."""
    text = environ.get(VARIABLE, "").strip()
    return PlannedFaults([parse(part.strip()) for part in text.split(",")]) if text else NoFaults()


@dataclass(frozen=True, slots=True)
class Planned:
    """One fault: at the `nth` time that `point` is reached, `action` happens."""

    point: str
    action: str
    nth: int = 1


_PLANNED = re.compile(r"(?P<point>[a-z._]+)=(?P<action>kill|stop|eio)(@(?P<nth>[1-9][0-9]{0,8}))?")


def parse(text: str) -> Planned:
    found = _PLANNED.fullmatch(text)
    if found is None:
        raise BadConfig(f"{text!r} is not a planned fault. {HOW_TO}", field=VARIABLE, value=text)
    return Planned(known_point(found["point"]), found["action"], int(found["nth"] or 1))


class PlannedFaults:
    """Counts how often each point is reached; points are reached on the event loop and in the writer's thread."""

    def __init__(self, planned: list[Planned]) -> None:
        self._planned = {(each.point, each.nth): ACTIONS[each.action] for each in planned}
        self._reached = {each.point: count(1) for each in planned}

    def at(self, point: str) -> None:
        reached = self._reached.get(point)
        if reached is not None and (action := self._planned.get((point, next(reached)))) is not None:
            action(point)


def _fail(point: str) -> None:
    raise StoreError(f"The disk failed at {point}, as {VARIABLE} specifies.", point=point)


ACTIONS: Mapping[str, Callable[[str], None]] = {
    "kill": lambda point: os.kill(os.getpid(), signal.SIGKILL),
    "stop": lambda point: os.kill(os.getpid(), signal.SIGSTOP),
    "eio": _fail,
}
