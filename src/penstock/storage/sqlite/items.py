"""Notes about the items that controllers work on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.contracts.items import DropItems, ItemChange, NoteItem
from penstock.storage.sqlite.session import Session
from penstock.storage.statements import load

SQL = load("penstock.storage.sqlite", "items.sql")


def change_items(session: Session, changes: Sequence[ItemChange]) -> None:
    for change in changes:
        match change:
            case NoteItem():
                session.connection.execute(SQL["note"], change._asdict())
            case DropItems(controller, items):
                rows = [{"controller": controller, "item": item} for item in items]
                session.connection.executemany(SQL["drop"], rows)


class SqliteItems:
    def __init__(self, session: Session) -> None:
        self._session = session

    def held(self, controller: str, *, limit: int) -> list[NoteItem]:
        bound = {"controller": controller, "limit": limit}
        rows: list[Any] = self._session.connection.execute(SQL["held"], bound).fetchall()
        return [NoteItem(*row) for row in rows]

    def forget(self, controller: str, *, states: tuple[str, ...]) -> int:
        return self._session.transact(partial(self._forget, controller, states))

    def _forget(self, controller: str, states: tuple[str, ...]) -> int:
        forgotten = 0
        for state in states:
            self._session.connection.execute(SQL["forget"], {"controller": controller, "state": state})
            forgotten += self._session.connection.changes()
        return forgotten
