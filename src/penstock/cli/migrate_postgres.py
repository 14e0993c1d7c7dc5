"""Tries migrations on PostgreSQL in a transaction that is rolled back."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

import psycopg

from penstock.model.errors import BadMigration
from penstock.model.migration import Migration
from penstock.model.statement import one_line
from penstock.storage.postgres.connection import Settings, connect, first_line

LOCK_SECONDS = "set local lock_timeout = '5s'"  # a worker's transaction is not held up for longer


def try_out(address: str, migrations: Sequence[Migration]) -> None:
    """Run every statement and keep nothing. Raise BadMigration for the first that the server refuses."""
    with closing(connect(Settings(address))) as connection:
        connection.execute("begin")
        connection.execute(LOCK_SECONDS)
        for migration in migrations:
            for statement in migration.statements:
                try:
                    connection.execute(statement.encode())
                except psycopg.Error as error:
                    raise BadMigration(
                        f"{migration.name}: {first_line(error)}. The statement was: {one_line(statement)}.",
                        name=migration.name,
                        statement=statement,
                    ) from error
