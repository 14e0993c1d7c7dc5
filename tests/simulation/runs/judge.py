"""A workflow's shape played in plain Python over what a run has recorded: its value, or what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tests.simulation.runs.model import Record
from tests.simulation.runs.shape import FAILING, Child, Do, Node, Patched, Sequence, Sleep, Together, Wait, mixed


class Front(NamedTuple):
    """Where a run has not got past: a part that has not begun, or one that waits. `record` is None for the former."""

    node: Node
    record: Record | None


class Doomed(Exception):
    """A failure that the workflow does not catch."""


Range = tuple[int, int]  # the first and the last position of what was recorded of a part


class Judge:
    """Raises nothing: what is wrong with a record is in `problems`."""

    def __init__(self, shape: Sequence, records: Mapping[str, Record]) -> None:
        self._records = records
        self._known: set[str] = set()
        self.problems: list[str] = []
        self.front: list[Front] = []
        self.doomed = False
        self._shape = shape

    def value(self, given: int) -> int | None:
        """What the run comes to, or None if it has not come to its end."""
        try:
            value, _ = self._sequence(self._shape, given)
        except Doomed:
            self.doomed = True
            value = None
        unknown = self._records.keys() - self._known
        if unknown and not self.doomed:  # what stands behind a failure is not looked at
            self.problems.append(f"{sorted(unknown)} cannot have been reached")
        return value

    def _sequence(self, nodes: Sequence, value: int) -> tuple[int | None, Range | None]:
        whole: Range | None = None
        now: int | None = value
        for node in nodes:
            assert now is not None
            now, part = self._node(node, now)
            if part is not None:
                if whole is not None and part[0] <= whole[1]:
                    self.problems.append(f"{node.name} began at {part[0]}, before what stands before it: {whole}")
                whole = part if whole is None else (whole[0], part[1])
            if now is None:
                break
        return now, whole

    def _node(self, node: Node, value: int) -> tuple[int | None, Range | None]:
        if isinstance(node, Together):
            return self._together(node, value)
        if isinstance(node, Patched):
            return self._patched(node, value)
        record = self._found(node.name)
        if record is None:
            self.front.append(Front(node, None))
            return None, None
        here = (record.position, record.position)
        match node:
            case Do():
                return self._done(node, record, value), here
            case Sleep():
                return self._over(node, record, "sleep", "slept", value), here
            case Wait():
                return self._waited(node, record, value), here
            case Child():
                said = self._ending(record)
                return self._over(node, record, "child", said, value), here

    def _found(self, name: str) -> Record | None:
        self._known.add(name)
        return self._records.get(name)

    def _done(self, node: Do, record: Record, value: int) -> int | None:
        self._is_kind(record, "step")
        match record.state:
            case "done":
                right = mixed(node.name, "done", value)
                if node.kind in FAILING or record.result != b"%d" % right:
                    self.problems.append(f"{node.name} has the result {record.result!r}, and {right} is right")
                return right
            case "failed":
                if node.kind not in FAILING:
                    self.problems.append(f"{node.name} failed for good: {record.error}")
                if not node.caught:
                    raise Doomed
                return mixed(node.name, "failed", value)
            case "retrying":
                self.front.append(Front(node, record))
            case _:
                self.problems.append(f"{node.name} is {record.state}")
        return None

    def _over(self, node: Sleep | Child | Wait, record: Record, kind: str, said: object, value: int) -> int | None:
        self._is_kind(record, kind)
        if record.state == "done":
            return mixed(node.name, said, value)
        if record.state == "waiting":
            self.front.append(Front(node, record))
        else:
            self.problems.append(f"{node.name} is {record.state}")
        return None

    def _waited(self, node: Wait, record: Record, value: int) -> int | None:
        if record.state == "timed_out":
            self._is_kind(record, "signal")
            if node.timeout is None:
                self.problems.append(f"{node.name} has no time-out and timed out")
            return mixed(node.name, "late", value)
        said = msgspec.json.decode(record.result) if record.result is not None else None
        return self._over(node, record, "signal", said, value)

    def _ending(self, record: Record) -> str:
        ending: dict[str, Any] = msgspec.json.decode(record.result) if record.result is not None else {}
        return ended(ending.get("state", ""), ending.get("result"))

    def _patched(self, node: Patched, value: int) -> tuple[int | None, Range | None]:
        marker, new, old = (self._found(name) for name in (node.name, node.new.name, node.old.name))
        if new is not None and old is not None:
            self.problems.append(f"{node.name} went both ways")
        if marker is not None and old is not None:
            self.problems.append(f"{node.name} was recorded, and the old way was gone")
        if new is not None and marker is None:
            self.problems.append(f"{node.name} was not recorded, and the new way was gone")
        if marker is not None and new is not None and marker.position >= new.position:
            self.problems.append(f"{node.name} was recorded after its new way")
        chosen = old if new is None else new
        if chosen is None:
            self.front.append(Front(node, None))
            return None, None if marker is None else (marker.position, marker.position)
        done = self._done(node.old if new is None else node.new, chosen, value)
        return done, (chosen.position if marker is None else marker.position, chosen.position)

    def _together(self, node: Together, value: int) -> tuple[int | None, Range | None]:
        values, parts = list[int | None](), list[Range]()
        for branch in node.branches:
            reached, part = self._sequence(branch, value)
            values.append(reached)
            if part is not None:
                parts.append(part)
        whole = (min(part[0] for part in parts), max(part[1] for part in parts)) if parts else None
        if any(reached is None for reached in values):
            return None, whole
        return mixed(node.name, values, value), whole

    def _is_kind(self, record: Record, kind: str) -> None:
        if record.kind != kind:
            self.problems.append(f"{record.name} is recorded as a {record.kind}, and is a {kind}")


def ended(state: str, result: object) -> str:
    """What a parent makes of its child's end."""
    return f"{state} {result}" if state == "complete" else state
