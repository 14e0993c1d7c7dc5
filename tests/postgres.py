"""The PostgreSQL server that all tests of one process share, and a database that is empty at the start of each test."""

from __future__ import annotations

import atexit
import time
from contextlib import ExitStack
from functools import cache
from typing import Any

import psycopg

from penstock.storage.postgres.store import PostgresStore
from tests.postgres_server import PostgresServer, running_server

# Rows are removed one table at a time and users' tables are dropped: a fiftieth of what a fresh database takes.
REMOVE_ROWS = """
select format('delete from penstock.%I', tablename)
  || case when tablename = 'penstock_facts' then ' where name <> ''schema''' else '' end
from pg_tables where schemaname = 'penstock'
union all
select format('select setval(%L, %s, false)', format('penstock.%I', sequencename), start_value)
from pg_sequences where schemaname = 'penstock'
"""
DROP_TABLES = """
do $$
declare
  found record;
begin
  for found in select tablename from pg_tables where schemaname = 'public' loop
    execute format('drop table public.%I cascade', found.tablename);
  end loop;
end
$$
"""
# Without the wait that PostgreSQL offers, which looks ten times a second whether they have ended.
END_OTHERS = """
select pg_terminate_backend(pid)
from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""


@cache
def server() -> PostgresServer:
    """Started by the first test that needs it; it ends with this process."""
    running = ExitStack()
    atexit.register(running.close)
    return running.enter_context(running_server())


@cache
def _reused(part: str) -> str:
    url = server().new_database()
    PostgresStore(url).open_writer(now=1).close()
    return url


@cache
def _emptying(url: str) -> str:
    """The same for every test, since none adds a table to the engine's."""
    return ";".join([statement for (statement,) in look(url, REMOVE_ROWS)] + [DROP_TABLES])


def empty_database(part: str = "") -> str:
    """The URL of a database with the engine's tables and nothing in them; every part of a test has its own. Whoever used it
    before is cut off."""
    url = _reused(part)
    while look(url, END_OTHERS):
        time.sleep(0.001)
    look(url, _emptying(url))
    return url


_LOOKING: dict[str, psycopg.Connection[Any]] = {}


def look(url: str, sql: str, *bound: object) -> list[tuple[Any, ...]]:
    """Runs one statement over a connection that is kept, since a new one costs more than most statements.

    It is in no transaction between two looks and holds no snapshot.
    """
    try:
        return _look(url, sql, bound)
    except psycopg.OperationalError:
        if not _LOOKING[url].closed:
            raise
        return _look(url, sql, bound)  # a test had ended every connection, this one too


def _look(url: str, sql: str, bound: tuple[object, ...]) -> list[tuple[Any, ...]]:
    connection = _LOOKING.get(url)
    if connection is None or connection.closed:
        connection = _LOOKING[url] = psycopg.connect(
            url, autocommit=True, prepare_threshold=None, options="-c search_path=penstock,public"
        )
        atexit.register(connection.close)
    cursor = connection.execute(sql.encode(), bound or None)
    return cursor.fetchall() if cursor.description else []
