"""The engine's schema has a version: made when missing, brought up to date under a lock, refused when newer."""

from __future__ import annotations

from typing import Any

import psycopg

from penstock.storage.postgres.connection import PostgresSettings, schema_statements
from penstock.storage.schema import VERSION, check

MAKING = 20_549  # the lock of the process that makes the schema

FOUND = "select value from penstock.penstock_facts where name = 'schema'"
NOTE = """
insert into penstock.penstock_facts (name, value)
values ('schema', %s)
on conflict (name) do update
set value = excluded.value
"""


def ensure(connection: psycopg.Connection[Any], settings: PostgresSettings) -> None:
    if found_in(connection) == VERSION:
        return
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", [MAKING])
        found = found_in(connection)
        check(found, settings.shown)
        if found == VERSION:
            return
        connection.execute("create schema if not exists penstock")
        for statement in schema_statements():
            connection.execute(statement.encode())
        connection.execute(NOTE, [str(VERSION)])


def found_in(connection: psycopg.Connection[Any]) -> int:
    there = connection.execute("select to_regclass('penstock.penstock_facts')").fetchone()
    if there is None or there[0] is None:
        return 0
    row = connection.execute(FOUND).fetchone()
    return 0 if row is None else int(row[0])
