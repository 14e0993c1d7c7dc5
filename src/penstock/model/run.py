"""Runs of workflows: their ids and states, what is recorded of each step, and when a record fits what the code asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.model.errors import BadMessage, PenstockError
from penstock.model.ids import NO_PARENT, derived

# The state of a row. Its message says whether an active run is queued, running or waiting.
ACTIVE, PAUSED, ERRORED, TERMINATED, COMPLETE = "active", "paused", "errored", "terminated", "complete"
QUEUED, RUNNING, WAITING = "queued", "running", "waiting"
STATES = (QUEUED, RUNNING, WAITING, PAUSED, ERRORED, TERMINATED, COMPLETE)
ENDED = (ERRORED, TERMINATED, COMPLETE)

STEP, SLEEP, SIGNAL, CHILD, PATCH = "step", "sleep", "signal", "child", "patch"
DONE, FAILED, RETRYING, PENDING, TIMED_OUT = "done", "failed", "retrying", "waiting", "timed_out"

NEVER_SECONDS = 1_000 * 365.25 * 86_400  # a run that waits without an end is due in a thousand years
NAME_MAX = 200
_MADE = re.compile(r"r[0-9a-f]{32}")


class StepRecord(NamedTuple):
    """What is kept of one step, sleep, wait or child of a run, in the order of its columns. Times are microseconds; `due` is
    when it is to go on by itself."""

    run: bytes
    position: int  # the order in which they began
    name: str
    kind: str
    state: str
    attempts: int
    started_at: int
    ended_at: int | None = None
    due: int | None = None
    result: bytes | None = None
    error: str | None = None
    traceback: str | None = None


class Ending(msgspec.Struct):
    """What a parent learns about its child."""

    state: str
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None


class Nondeterminism(PenstockError):
    """The code of a workflow asks for other steps than were recorded."""


class DuplicateStep(PenstockError):
    """Two steps of one run have one name. Add a distinguishing part, such as f"page-{number}"."""


def queue_of(workflow: str) -> str:
    return f"workflow.{workflow}"


def child_signal(step: str) -> str:
    """By which a parent hears that a child has ended. No user's signal has such a name."""
    return f"\x1fchild {step}"


def made_id(key: bytes) -> str:
    """The id of a run whose caller gave none."""
    return f"r{key.hex()}"


def key_of(workflow: str, id: str) -> bytes:
    """The id that a run's rows and its message have."""
    return bytes.fromhex(id[1:]) if is_made(id) else derived(NO_PARENT, "run", workflow, id)


def is_made(id: str) -> bool:
    return _MADE.fullmatch(id) is not None


def check_name(name: Any, what: str) -> str:
    if not isinstance(name, str) or not name or len(name) > NAME_MAX or not name.isprintable():
        raise BadMessage(f"{name!r} cannot name {what}: 1 to {NAME_MAX} printable characters.", name=name)
    return name


class Script:
    """What was recorded of a run, and how far its code has asked for it again. Code that is still the same asks for every
    record in the order in which they began, and for nothing else before it has."""

    def __init__(self, records: Sequence[StepRecord]) -> None:
        self.patches: set[str] = set()
        self._records: dict[str, StepRecord] = {}
        self._order: list[str] = []
        self._asked: set[str] = set()
        self._begun = 0  # of the order, those that have been asked for
        self.next_position = 0
        if not records:
            return
        rows = sorted(records, key=lambda record: record.position)
        self.patches = {record.name for record in rows if record.kind == PATCH}
        self._records = {record.name: record for record in rows if record.kind != PATCH}
        self._order = [record.name for record in rows if record.kind != PATCH]
        self.next_position = rows[-1].position + 1

    @property
    def is_replaying(self) -> bool:
        return self._begun < len(self._order)

    @property
    def asked(self) -> int:
        return len(self._asked)

    def ask(self, name: str) -> None:
        if name in self._asked:
            raise DuplicateStep(
                f'This run has two steps called {name!r}. Add a distinguishing part, such as f"{name}-{{number}}".',
                name=name,
            )
        self._asked.add(name)

    def is_next(self, name: str) -> bool:
        """Whether it is its turn. Steps beside each other may be asked for in another order than they began in."""
        if self._begun == len(self._order):
            return True
        if self._order[self._begun] != name:
            return False
        self._begun += 1
        return True

    def found(self, name: str, kind: str) -> StepRecord | None:
        record = self._records.get(name)
        if record is not None and record.kind != kind:
            raise Nondeterminism(f"{name!r} was recorded as a {record.kind}, and the code has a {kind} of that name.")
        return record

    def differs(self, name: str | None) -> Nondeterminism:
        """The code asks for `name`, or has ended, where something else was recorded."""
        recorded = self._order[self._begun]
        lines = [f"  {each}" for each in self._order[: self._begun]][-3:]
        lines.append(f"- {recorded}  (recorded)")
        lines.append("+ the end  (what the code does now)" if name is None else f"+ {name}  (what the code does now)")
        rest = len(self._order) - self._begun - 1
        lines += [f"- and {rest} more recorded"] if rest else []
        return Nondeterminism(
            "The code differs from what this run has recorded:\n" + "\n".join(lines) + "\nPut the old code back, keep "
            "both ways with `run.patched(...)`, or restart the run from a step before the difference.",
            recorded=recorded,
            asked=name,
        )

    def patched(self, name: str) -> bool | None:
        """None: no run has decided yet, and this one is the first."""
        if name in self.patches:
            return True
        return False if self.is_replaying else None
