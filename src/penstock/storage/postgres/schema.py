"""The engine's schema has a version: made when missing, brought up to date under a lock, refused when newer."""

from __future__ import annotations

from typing import Any

import psycopg

from penstock.model.errors import SchemaTooNew, SchemaTooOld
from penstock.storage.postgres.connection import Settings, schema_statements

VERSION = 4
OLDEST_READ = 1
MAKING = 20_549  # the lock of whoever makes the schema

FOUND = "select value from penstock.penstock_facts where name = 'schema'"
NOTE = """
insert into penstock.penstock_facts (name, value)
values ('schema', %s)
on conflict (name) do update
set value = excluded.value
"""


def ensure(connection: psycopg.Connection[Any], settings: Settings) -> None:
    if found_in(connection) == VERSION:
        return
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", [MAKING])
        found = found_in(connection)
        check(found, settings.shown)
        if found == VERSION:
            return
        for statement in schema_statements():
            connection.execute(statement.encode())
        connection.execute(NOTE, [str(VERSION)])


def found_in(connection: psycopg.Connection[Any]) -> int:
    there = connection.execute("select to_regclass('penstock.penstock_facts')").fetchone()
    if there is None or there[0] is None:
        return 0
    row = connection.execute(FOUND).fetchone()
    return 0 if row is None else int(row[0])


def check(found: int, location: str) -> None:
    if found > VERSION:
        raise SchemaTooNew(
            f"{location} has schema {found}; this Penstock knows {VERSION}. Upgrade Penstock; nothing was changed.",
            found=found,
            known=VERSION,
        )
    if 0 < found < OLDEST_READ:
        raise SchemaTooOld(
            f"{location} has schema {found}; this Penstock reads {OLDEST_READ} to {VERSION}. Upgrade in smaller steps.",
            found=found,
            known=VERSION,
        )
