"""The engine's schema has a version: made when missing, brought up to date under a lock, refused when newer."""

from __future__ import annotations

from contextlib import suppress

import apsw

from penstock.model.errors import StoreCorrupt
from penstock.model.sql_files import BOTH, load
from penstock.storage.schema import VERSION, check
from penstock.storage.sqlite import connection
from penstock.storage.sqlite.session import SqliteSession

SQL = load(BOTH, "schema.sql") | load("penstock.storage.sqlite", "schema.sql")
UPGRADE = load("penstock.storage.sqlite", "upgrade.sql")
APPLICATION_ID = connection.APPLICATION_ID


def ensure(session: SqliteSession) -> None:
    with session.turn, session.errors():
        found = int(session.connection.pragma("user_version"))
        check(found, str(session.settings.path))
        if found == VERSION:
            return
        session.begin()
        try:
            for statement in UPGRADE.values() if found else ():
                with suppress(apsw.SQLError):  # it has the column, or lacks the table: it is made below
                    session.connection.execute(statement)
            for statement in SQL.values():
                session.connection.execute(statement)
            session.connection.pragma("user_version", VERSION)
            session.connection.pragma("application_id", APPLICATION_ID)
            session.commit()
        except BaseException:
            session.rollback()
            raise


def quick_check(session: SqliteSession) -> None:
    """A damaged file is refused before anything is written to it."""
    answer = session.connection.execute("pragma quick_check(1)").fetchall()
    if answer != [("ok",)]:
        raise StoreCorrupt(
            f"{session.settings.path} is damaged: {answer[0][0]}. Keep the file, and restore the last backup "
            "(`penstock restore`).",
            path=str(session.settings.path),
        )
