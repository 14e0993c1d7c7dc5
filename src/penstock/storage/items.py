"""Notes about the items that controllers work on."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.contracts.items import DropItems, ItemChange, NoteItem
from penstock.storage.session import Session, StoredPart, in_transaction


def change_items(session: Session, changes: Sequence[ItemChange]) -> None:
    for change in changes:
        match change:
            case NoteItem():
                session.change("items.note", change._asdict())
            case DropItems(controller, items):
                rows = [{"controller": controller, "item": item} for item in items]
                session.change_many("items.drop", rows)


class StoredItems(StoredPart):
    def held(self, controller: str, *, limit: int) -> list[NoteItem]:
        bound = {"controller": controller, "limit": limit}
        return [NoteItem(*row) for row in self._session.rows("items.held", bound)]

    @in_transaction
    def forget(self, controller: str, *, states: tuple[str, ...]) -> None:
        for state in states:
            self._session.change("items.forget", {"controller": controller, "state": state})
