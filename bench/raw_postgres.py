"""The raw loop on PostgreSQL: what a careful programmer reaches with psycopg alone, one connection and two transactions a
hundred messages.

Every step is one statement over a hundred rows, prepared, with binary parameters, and a transaction of its own wherever
one statement is all of it. No ids that survive a retry, no fence, no counters, no handlers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg

from bench.load import CREATE_RESULTS, QUEUE, SENT_TO, Load
from bench.place import Place

BATCH = 100
LEASE_MICROS = 930_000_000

CREATE = """
create table messages (
  id bigint generated always as identity primary key,
  queue text not null,
  due bigint not null,
  lease bigint,
  body bytea not null
);
create index messages_waiting on messages (queue, due) where lease is null;
"""
SEND = """
insert into messages (queue, due, body)
select %(queue)s, %(due)s, body
from unnest(%(bodies)s::bytea[]) as sent (body)
"""
CLAIM = """
update messages
set lease = %(lease_end)s
where id in (
  select id
  from messages
  where queue = %(queue)s
  and lease is null
  and due <= %(now)s
  order by due
  limit %(limit)s
  for update skip locked
)
returning id, body
"""
DELETE = "delete from messages where id = any(%(ids)s)"
WRITE = """
insert into results (number, title, score)
select number, title, score
from unnest(%(number)s::bigint[], %(title)s::text[], %(score)s::float8[]) as written (number, title, score)
"""

Connection = psycopg.Connection[tuple[Any, ...]]


def send_then_drain(place: Place, load: Load) -> tuple[float, float]:
    """Seconds to send everything in transactions of 100, and to claim and delete it, 100 at a time."""
    with created(place) as connection:
        began = time.perf_counter()
        _send_all(connection, load)
        sent = time.perf_counter()
        done = 0
        while claimed := _claim(connection):
            _delete(connection, claimed)
            done += len(claimed)
        drained = time.perf_counter()
    assert done == load.count, f"{done} of {load.count} messages were delivered"
    return sent - began, drained - sent


def send_then_work(place: Place, load: Load) -> tuple[float]:
    """Seconds to drain where each message also writes a row of the user's and sends a message, with its delete."""
    with created(place) as connection:
        _send_all(connection, load)
        began = time.perf_counter()
        done = 0
        while claimed := _claim(connection):
            share = slice(done, done + len(claimed))
            results = load.results[share]
            with connection.transaction():
                columns = {name: [result[name] for result in results] for name in ("number", "title", "score")}
                connection.execute(WRITE, columns, binary=True)
                _send(connection, load.bodies_sent[share], SENT_TO)
                _delete(connection, claimed)
            done += len(claimed)
        seconds = time.perf_counter() - began
    assert done == load.count, f"{done} of {load.count} messages were delivered"
    return (seconds,)


def send_while_draining(place: Place, load: Load) -> tuple[float]:
    """Seconds to send, claim and delete everything, hundred after hundred: three transactions each."""
    with created(place) as connection:
        began = time.perf_counter()
        for start in range(0, load.count, BATCH):
            _send(connection, load.bodies[start : start + BATCH])
            _delete(connection, _claim(connection))
        return (time.perf_counter() - began,)


def created(place: Place) -> Connection:
    connection: Connection = psycopg.connect(place.database, autocommit=True, prepare_threshold=1)
    connection.execute(CREATE)
    connection.execute(CREATE_RESULTS)
    return connection


def _send_all(connection: Connection, load: Load) -> None:
    for start in range(0, load.count, BATCH):
        _send(connection, load.bodies[start : start + BATCH])


def _send(connection: Connection, bodies: Sequence[bytes], queue: str = QUEUE) -> None:
    connection.execute(SEND, {"queue": queue, "due": _now(), "bodies": list(bodies)}, binary=True)


def _claim(connection: Connection) -> list[int]:
    now = _now()
    probe = {"queue": QUEUE, "now": now, "lease_end": now + LEASE_MICROS, "limit": BATCH}
    return [id for id, _ in connection.execute(CLAIM, probe, binary=True)]


def _delete(connection: Connection, claimed: list[int]) -> None:
    connection.execute(DELETE, {"ids": claimed}, binary=True)


def _now() -> int:
    return time.time_ns() // 1000
