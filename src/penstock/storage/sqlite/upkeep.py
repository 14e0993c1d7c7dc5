"""Upkeep of a SQLite database: migrations, kept counts, usage, sizes, pruning, and catching up with the log."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from penstock.model.migration import Migration
from penstock.storage.sqlite.session import SqliteSession
from penstock.storage.upkeep import StoredUpkeep, count_not_kept, not_applied


class SqliteUpkeep(StoredUpkeep):
    def __init__(self, session: SqliteSession) -> None:
        super().__init__(session)
        self._session: SqliteSession = session
        self._version = int(session.connection.pragma("data_version"))

    # -- migrations -------------------------------------------------------------------------------

    def migrate(self, migrations: Sequence[Migration], *, now: int) -> list[str]:
        """Each file is one transaction; a process that migrates at the same time waits, then finds nothing to do."""
        return [migration.name for migration in migrations if self._apply(migration, now)]

    def _apply(self, migration: Migration, now: int) -> bool:
        def apply() -> bool:
            if migration.name in dict(self._session.rows("upkeep.applied")):
                return False
            for statement in migration.statements:
                self._run(migration, statement)
            note = {"name": migration.name, "checksum": migration.checksum, "now": now}
            self._session.change("upkeep.note_migration", note)
            return True

        try:
            return self._session.transact(apply)
        except apsw.ConstraintError as error:
            raise not_applied(migration, str(error)) from error

    def _run(self, migration: Migration, statement: str) -> None:
        with self._session.guard.users():
            try:
                self._session.connection.execute(statement).fetchall()
            except (apsw.SQLError, apsw.ConstraintError, apsw.AuthError, apsw.MismatchError) as error:
                raise not_applied(migration, str(error), statement) from error

    # -- counts that are kept, not counted ----------------------------------------------------------

    def _start_count(self, table: str, checked: str) -> None:
        try:
            for statement in kept_count_statements(table, checked):
                self._session.connection.execute(statement)
        except apsw.SQLError as error:
            raise count_not_kept(table, str(error)) from error

    def _count_is_kept(self, table: str, checked: str) -> bool:
        names = {"name": table, "added": f"penstock_count_{table}_added", "removed": f"penstock_count_{table}_removed"}
        return bool(self._session.value("upkeep.count_is_kept", names))

    # -- size ---------------------------------------------------------------------------------------

    def size_bytes(self) -> int:
        return int(self._session.value("upkeep.page_count")) + self._session.checkpointer.log_bytes()

    def log_bytes(self) -> int:
        return self._session.checkpointer.log_bytes()

    def look_around(self) -> bool:
        session = self._session
        session.check_file()
        if session.checkpointer.overgrown:
            with session.turn:
                session.checkpointer.run()
        if session.reserve.released:
            session.reserve.refill()
        version = int(session.connection.pragma("data_version"))
        changed = version != self._version
        self._version = version
        return changed

    def server_time(self) -> int | None:
        return None  # the database is on this host


def kept_count_statements(table: str, checked: str) -> list[str]:
    """Triggers that keep a table's count right inside the transactions that change it. Names are validated before."""
    name = table.replace("'", "''")
    add = "update penstock_counts set total = total {} 1 where name = '{}'; end"
    return [
        f"update penstock_counts set total = (select count(*) from {checked}) where name = '{name}'",
        f"drop trigger if exists penstock_count_{table}_added",
        f"drop trigger if exists penstock_count_{table}_removed",
        f"create trigger penstock_count_{table}_added after insert on {checked} begin " + add.format("+", name),
        f"create trigger penstock_count_{table}_removed after delete on {checked} begin " + add.format("-", name),
    ]
