"""Upkeep of a PostgreSQL database: migrations, kept counts, usage, sizes and pruning."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import psycopg
from psycopg import sql

from penstock.model.migration import Migration
from penstock.storage.postgres.connection import first_line, is_lost
from penstock.storage.postgres.session import PostgresSession
from penstock.storage.postgres.users import ENGINES_PLANS, USERS_PLANS
from penstock.storage.upkeep import StoredUpkeep, count_not_kept, not_applied

MIGRATING = 20_548  # the lock of the process that migrates
NUMBERS_KEPT_MICROS = 86_400_000_000


class PostgresUpkeep(StoredUpkeep):
    def __init__(self, session: PostgresSession) -> None:
        super().__init__(session)
        self._session: PostgresSession = session
        self._number = int(session.value("upkeep.last_number"))

    # -- migrations -------------------------------------------------------------------------------

    def migrate(self, migrations: Sequence[Migration], *, now: int) -> list[str]:
        """Each file is one transaction; a process that migrates at the same time waits, then finds nothing to do."""
        return [
            migration.name for migration in migrations if self._session.transact(partial(self._apply, migration, now))
        ]

    def _apply(self, migration: Migration, now: int) -> bool:
        session = self._session
        session.connection.execute("select pg_advisory_xact_lock(%s)", [MIGRATING])
        if migration.name in dict(session.rows("upkeep.applied")):
            return False
        session.connection.execute(USERS_PLANS)
        for statement in migration.statements:
            self._run(migration, statement)
        session.connection.execute(ENGINES_PLANS)
        session.change("upkeep.note_migration", {"name": migration.name, "checksum": migration.checksum, "now": now})
        try:
            session.connection.execute("set constraints all immediate")
        except psycopg.IntegrityError as error:
            raise not_applied(migration, first_line(error)) from error
        return True

    def _run(self, migration: Migration, statement: str) -> None:
        try:
            self._session.connection.execute(statement.encode())
        except psycopg.Error as error:
            if is_lost(self._session.connection, error):
                raise
            raise not_applied(migration, first_line(error), statement) from error

    # -- counts that are kept, not counted ----------------------------------------------------------

    def _count_is_kept(self, table: str, checked: str) -> bool:
        return bool(self._session.value("upkeep.count_is_kept", {"name": table, "checked": checked}))

    def _start_count(self, table: str, checked: str) -> None:
        try:
            for statement in kept_count_statements(table):
                self._session.connection.execute(statement)
        except psycopg.ProgrammingError as error:
            raise count_not_kept(table, first_line(error)) from error

    # -- what the server knows ----------------------------------------------------------------------

    def size_bytes(self) -> int:
        return int(self._session.value("upkeep.size"))

    def log_bytes(self) -> int:
        return 0

    def prune(self, *, now: int, limit: int, dedup_seconds: float = 15 * 86_400.0) -> int:
        before = {"before": now - NUMBERS_KEPT_MICROS}
        self._session.transact(partial(self._session.change, "upkeep.prune_numbers", before))
        return super().prune(now=now, limit=limit, dedup_seconds=dedup_seconds)

    def look_around(self) -> bool:
        self._session.ensure()
        number = int(self._session.value("upkeep.last_number"))
        changed = number != self._number
        self._number = number
        return changed

    def server_time(self) -> int | None:
        self._session.ensure()
        return int(self._session.value("upkeep.server_time"))


_COUNT = (
    "lock table {table} in share row exclusive mode",
    "update penstock.penstock_counts set total = (select count(1) from {table}) where name = {name}",
    "drop trigger if exists penstock_count_insert on {table}",
    "drop trigger if exists penstock_count_delete on {table}",
    "drop trigger if exists penstock_count_truncate on {table}",
    "create trigger penstock_count_insert after insert on {table} referencing new table as changed "
    "for each statement execute function penstock.keep_count({name})",
    "create trigger penstock_count_delete after delete on {table} referencing old table as changed "
    "for each statement execute function penstock.keep_count({name})",
    "create trigger penstock_count_truncate after truncate on {table} "
    "for each statement execute function penstock.keep_count({name})",
)


def kept_count_statements(table: str) -> list[sql.Composed]:
    """Triggers that keep a table's count right inside the transactions that change it."""
    named = {"table": sql.Identifier(*table.split(".")), "name": sql.Literal(table)}
    return [sql.SQL(statement).format(**named) for statement in _COUNT]
