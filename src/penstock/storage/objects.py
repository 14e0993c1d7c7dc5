"""Objects: owned by one process at a time, saved only by their owner, let go when it dies or another process asks."""

from __future__ import annotations

from typing import Any

from penstock.contracts.objects import Acquired, ObjectRow, SaveObject
from penstock.storage.session import Session, StoredPart, in_transaction


def save(session: Session, wanted: SaveObject, now: int) -> bool:
    """False if the object is not ours any more."""
    if wanted.state is None:
        return is_owned(session, wanted)
    return session.change("objects.save", wanted._asdict() | {"me": session.worker, "now": now}) == 1


def is_owned(session: Session, wanted: SaveObject) -> bool:
    owned = {"class_name": wanted.class_name, "name": wanted.name, "epoch": wanted.epoch, "me": session.worker}
    return session.value("objects.is_owned", owned) is not None


class StoredObjects(StoredPart):
    @in_transaction
    def acquire(self, class_name: str, name: str, *, fresh: bytes, hint: str | None, now: int) -> Acquired:
        session = self._session
        facts = {"class_name": class_name, "name": name, "fresh": fresh, "hint": hint, "now": now, "me": session.worker}
        session.change("objects.create", facts)
        while not (taken := session.rows("objects.acquire", facts)):
            session.change("objects.ask", facts)
            owner: int | None = session.value("objects.owner", facts)
            if owner is not None:  # otherwise it was let go between the two
                return Acquired(owner, 0, b"")
        ((epoch, state),) = taken
        return Acquired(None, epoch, bytes(state))

    @in_transaction
    def release(self, class_name: str, name: str, epoch: int) -> None:
        facts = {"class_name": class_name, "name": name, "epoch": epoch, "me": self._session.worker}
        self._session.change("objects.release", facts)

    @in_transaction
    def disown(self, class_name: str, name: str) -> None:
        facts = {"class_name": class_name, "name": name, "me": self._session.worker}
        self._session.change("objects.disown", facts)

    def wanted(self) -> list[tuple[str, str]]:
        return self._session.rows("objects.wanted", {"me": self._session.worker})

    def look(self, class_name: str, name: str) -> ObjectRow | None:
        facts = {"class_name": class_name, "name": name}
        rows: list[Any] = self._session.rows("objects.look", facts)
        return ObjectRow(*rows[0]) if rows else None

    def listed(self, class_name: str | None, *, limit: int) -> list[ObjectRow]:
        facts = {"class_name": class_name, "limit": limit}
        return [ObjectRow(*row) for row in self._session.rows("objects.listed", facts)]

    @in_transaction
    def lost_alarm(self, class_name: str, name: str, *, lost: bool) -> None:
        facts = {"class_name": class_name, "name": name, "lost": int(lost)}
        self._session.change("objects.lost_alarm", facts)

    @in_transaction
    def introduce(self, class_name: str, tag: str, *, now: int) -> str | None:
        facts = {"class_name": class_name, "tag": tag, "now": now}
        before: str | None = self._session.value("objects.tag", facts)
        self._session.change("objects.introduce", facts)
        return before
