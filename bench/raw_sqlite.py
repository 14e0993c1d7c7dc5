"""The raw loop: what a careful programmer reaches with apsw alone, one thread and two transactions a hundred messages.

No ids that survive a retry, no fence, no counters, no handlers: the loop only shows what the disk and SQLite allow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import apsw

from bench.load import CREATE_RESULTS, QUEUE, SENT_TO, WRITE, Load
from bench.place import Place

BATCH = 100
LEASE_MICROS = 930_000_000

CREATE = """
create table messages (
  id integer primary key,
  queue text not null,
  due integer not null,
  lease integer,
  body blob not null
);
create index messages_waiting on messages (queue, due) where lease is null;
"""
SEND = "insert into messages (queue, due, body) values (?, ?, ?)"
CLAIM = """
update messages
set lease = :lease_end
where id in (
  select id
  from messages
  where queue = :queue
  and lease is null
  and due <= :now
  order by due
  limit :limit
)
returning id, body
"""
DELETE = "delete from messages where id = ?"

Claimed = list[tuple[Any]]  # the ids, each in a row of its own as `executemany` takes them


def send_then_drain(place: Place, load: Load) -> tuple[float, float]:
    """Seconds to send everything in transactions of 100, and to claim and delete it, 100 at a time."""
    with closing(created(place)) as connection:
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
    with closing(created(place)) as connection:
        _send_all(connection, load)
        began = time.perf_counter()
        done = 0
        while claimed := _claim(connection):
            share = slice(done, done + len(claimed))
            due = _now()
            connection.execute("begin immediate")
            connection.executemany(WRITE, load.results[share])
            connection.executemany(SEND, [(SENT_TO, due, body) for body in load.bodies_sent[share]])
            connection.executemany(DELETE, claimed)
            connection.execute("commit")
            done += len(claimed)
        seconds = time.perf_counter() - began
    assert done == load.count, f"{done} of {load.count} messages were delivered"
    return (seconds,)


def send_while_draining(place: Place, load: Load) -> tuple[float]:
    """Seconds to send, claim and delete everything, hundred after hundred: three transactions each."""
    with closing(created(place)) as connection:
        began = time.perf_counter()
        for start in range(0, load.count, BATCH):
            _send(connection, load.bodies[start : start + BATCH])
            _delete(connection, _claim(connection))
        return (time.perf_counter() - began,)


def created(place: Place) -> apsw.Connection:
    connection = apsw.Connection(place.database)
    connection.set_busy_timeout(30_000)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.execute(CREATE + CREATE_RESULTS)
    return connection


def _send_all(connection: apsw.Connection, load: Load) -> None:
    for start in range(0, load.count, BATCH):
        _send(connection, load.bodies[start : start + BATCH])


def _send(connection: apsw.Connection, bodies: Sequence[bytes]) -> None:
    due = _now()
    connection.execute("begin immediate")
    connection.executemany(SEND, [(QUEUE, due, body) for body in bodies])
    connection.execute("commit")


def _claim(connection: apsw.Connection) -> Claimed:
    now = _now()
    probe = {"queue": QUEUE, "now": now, "lease_end": now + LEASE_MICROS, "limit": BATCH}
    connection.execute("begin immediate")
    claimed = connection.execute(CLAIM, probe).fetchall()
    connection.execute("commit")
    return [(id,) for id, _ in claimed]


def _delete(connection: apsw.Connection, claimed: Claimed) -> None:
    connection.execute("begin immediate")
    connection.executemany(DELETE, claimed)
    connection.execute("commit")


def _now() -> int:
    return time.time_ns() // 1000
