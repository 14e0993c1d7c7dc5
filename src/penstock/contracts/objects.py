"""Objects with state as the store knows them: who owns each, and what was saved last."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class SaveObject(NamedTuple):
    """An object's state after an event. It is saved only while its owner is still who loaded it."""

    class_name: str
    name: str
    epoch: int
    state: bytes | None  # None: nothing has changed, but it must still be ours


class Acquired(NamedTuple):
    """`owner` is another live process, if the object could not be had."""

    owner: int | None
    epoch: int
    state: bytes


class ObjectRow(NamedTuple):
    class_name: str
    name: str
    state: bytes
    epoch: int
    owner: int | None
    alarm: int | None
    alarm_lost: bool
    saved_at: int


class Objects(Protocol):
    """Lives in the writer's thread. Each method is one transaction."""

    def acquire(self, class_name: str, name: str, *, fresh: bytes, hint: str | None, now: int) -> Acquired:
        """Makes this process the owner, and the object if there was none. Another process that owns it is asked to let go."""

    def release(self, class_name: str, name: str, epoch: int) -> None: ...
    def disown(self, class_name: str, name: str) -> None:
        """Lets go of an object of this process that is not in its memory."""

    def wanted(self) -> list[tuple[str, str]]:
        """Objects of this process that others ask for."""

    def look(self, class_name: str, name: str) -> ObjectRow | None: ...
    def listed(self, class_name: str | None, *, limit: int) -> list[ObjectRow]: ...
    def lost_alarm(self, class_name: str, name: str, *, lost: bool) -> None: ...
    def introduce(self, class_name: str, tag: str, *, now: int) -> str | None:
        """Notes under which tag a class was introduced; the tag it had before, if any."""
