"""A database that is full: messages, dead letters and runs by the million, written with the database's own statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import apsw
import psycopg

from penstock.model.run import key_of

QUEUES = 25
HOUR = 3_600_000_000


class Size(NamedTuple):
    messages: int
    dead: int
    runs: int


NUMBERS = {
    "sqlite": "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {most})",
    "postgres": "with numbers (n) as (select n from generate_series(1, {most}) as made (n))",
}
ID = {"sqlite": "cast(printf('{kind}%015d', n) as blob)", "postgres": "decode(lpad(to_hex(n), 32, '{kind}'), 'hex')"}
BODY = {"sqlite": "cast('{}' as blob)", "postgres": "decode('7b7d', 'hex')"}


STATEMENTS = {
    "queues": """
insert into penstock_queues (name, retries, retry_first_seconds, retry_longest_seconds, timeout_seconds, crashes_max)
select 'queue-' || (n % 25), 3, 1.0, 60.0, 60.0, 3
from numbers
""",
    "counters": """
insert into penstock_counters (queue, worker, sent, acked, dead, bytes)
select 'queue-' || (n % 25), 1, {sent}, 1000, {dead}, 0
from numbers
""",
    "messages": """
insert into penstock_messages (
  id, queue, priority, due, type, source, correlation_id, hops, depth, sent_at, checksum, body
)
select {id}, {queue}, n % 3, {now} - {hour} + n % {hours}, 'page.found', 'bench', {id}, 0, 0, {now} - {hour}, 0, {body}
from numbers
""",
    "dead": """
insert into penstock_dead (
  id, handler, queue, priority, type, source, correlation_id, hops, depth, sent_at, checksum, body, flags, replay_count,
  attempts, crashes, reason, error_class, error_message, failed_at
)
select {letter}, '', {queue}, 1, 'page.found', 'bench', {letter}, 0, 0, {now} - {hour}, 0, {body}, 0, 0, 3, 0, 'exhausted',
  'ValueError', 'no such page ' || n, {now} - n * 1000
from numbers
""",
}
RUNS = """
insert into penstock_runs (key, workflow, id, state, input, priority, correlation_id, created_at, ended_at)
values ({0}, {0}, {0}, {0}, {0}, 1, {0}, {0}, {0})
"""
STEPS = """
insert into penstock_steps (run, position, name, kind, state, attempts, started_at, ended_at)
values ({0}, {0}, {0}, 'step', 'done', 1, {0}, {0})
"""


def fill(address: str, size: Size, now: int) -> None:
    """Add so many rows to a database that has the tables of an app."""
    store = "postgres" if "://" in address else "sqlite"
    with _postgres(address) if store == "postgres" else _sqlite(address) as run:
        _fill(run, store, size, now)


def _fill(run: Any, store: str, size: Size, now: int) -> None:
    queue, id_, body = "'queue-' || (n % 25)", ID[store], BODY[store]
    messages, dead = size.messages // QUEUES, size.dead // QUEUES
    given = {"now": now, "hour": HOUR, "hours": 2 * HOUR, "sent": messages + dead + 1_000, "dead": dead, "body": body}
    given |= {"id": id_.format(kind="1"), "letter": id_.format(kind="2"), "queue": queue}
    rows = {"queues": QUEUES, "counters": QUEUES, "messages": size.messages, "dead": size.dead}
    for name, text in STATEMENTS.items():
        run(NUMBERS[store].format(most=rows[name]) + text.format(**given))
    _fill_runs(run, store, size.runs, now)
    run("analyze")


def _fill_runs(run: Any, store: str, runs: int, now: int) -> None:
    """Add runs with three steps each, under the keys that the engine finds them by."""
    mark = "?" if store == "sqlite" else "%s"
    states = {0: "errored", 1: "paused"}
    rows, steps = [], []
    for number in range(1, runs + 1):
        workflow, id = f"flow-{number % 4}", f"run-{number}"
        key, at = key_of(workflow, id), now - number * 1_000
        rows.append((key, workflow, id, states.get(number % 100, "complete"), b"{}", key, at, at + 500))
        steps += [(key, position, f"step {position}", at, at + 100) for position in range(3)]
    run(RUNS.format(mark), rows)
    run(STEPS.format(mark), steps)


@contextmanager
def _sqlite(address: str) -> Iterator[Any]:
    with closing(apsw.Connection(address)) as connection:
        connection.execute("pragma synchronous = off")

        def run(text: str, rows: Any = None) -> None:
            with connection:
                connection.execute(text) if rows is None else connection.executemany(text, rows)

        yield run


@contextmanager
def _postgres(address: str) -> Iterator[Any]:
    options = "-c search_path=penstock,public"
    with closing(psycopg.connect(address, autocommit=True, options=options)) as connection:

        def run(text: str, rows: Any = None) -> None:
            if rows is None:
                connection.execute(text.encode())
            else:
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany(text.encode(), rows)

        yield run
