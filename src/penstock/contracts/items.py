"""Items that a controller works on: what is noted about each, in the commit of what was done with it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

DONE, GONE, PARKED, WAITING = "done", "gone", "parked", "waiting"


class NoteItem(NamedTuple):
    """`done` until `after` has had it; gone and parked ones are not picked again; a waiting one is, when it is due."""

    controller: str
    item: str
    state: str
    attempts: int
    due: int
    error: str | None


class DropItems(NamedTuple):
    controller: str
    items: tuple[str, ...]


ItemChange = NoteItem | DropItems


class Items(Protocol):
    """Lives in the writer's thread."""

    def held(self, controller: str, *, limit: int) -> list[NoteItem]: ...
    def forget(self, controller: str, *, states: tuple[str, ...]) -> None:
        """Let items in these states be picked again."""
