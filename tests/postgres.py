"""The PostgreSQL server that all tests of one process share, and a database that is empty at the start of each test."""

from __future__ import annotations

import atexit
from contextlib import ExitStack
from functools import cache

import psycopg

from penstock.storage.postgres.store import PostgresStore
from penstock.testing.postgres import PostgresServer, running_server

# Rows are removed one table at a time and users' tables are dropped: a tenth of what a fresh database takes.
EMPTY = """
do $$
declare
  found record;
begin
  for found in select tablename from pg_tables where schemaname = 'public' loop
    execute format('drop table public.%I cascade', found.tablename);
  end loop;
  for found in select tablename from pg_tables where schemaname = 'penstock' loop
    if found.tablename <> 'penstock_facts' then
      execute format('delete from penstock.%I', found.tablename);
    else
      delete from penstock.penstock_facts where name <> 'schema';
    end if;
  end loop;
  for found in select sequencename from pg_sequences where schemaname = 'penstock' loop
    execute format('alter sequence penstock.%I restart', found.sequencename);
  end loop;
end
$$
"""
END_OTHERS = """
select count(pg_terminate_backend(pid, 5000))
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
def _reused() -> str:
    url = server().new_database()
    PostgresStore(url).open_writer(now=1).close()
    return url


def empty_database() -> str:
    """The URL of a database with the engine's tables and nothing in them. Whoever used it before is cut off."""
    url = _reused()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(END_OTHERS)
        connection.execute(EMPTY)
    return url
