"""The raw loop: what a careful programmer reaches with apsw alone, one thread and two transactions a hundred messages.

No ids that survive a retry, no fence, no counters, no handlers: the loop only shows what the disk and SQLite allow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

BATCH = 100
QUEUE, SENT_TO = "listings", "scored"
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
create table results (
  number integer not null,
  title text not null,
  score real not null
);
"""
SEND = "insert into messages (queue, due, body) values (?, ?, ?)"
CLAIM = """
update messages set lease = :lease_end
where id in (
  select id from messages where queue = :queue and lease is null and due <= :now order by due limit :limit
)
returning id, body
"""
DELETE = "delete from messages where id = ?"
WRITE = "insert into results (number, title, score) values (:number, :title, :score)"

Result = dict[str, int | str | float]


def connect(path: Path) -> apsw.Connection:
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(30_000)
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    return connection


def created(path: Path) -> apsw.Connection:
    connection = connect(path)
    connection.execute(CREATE)
    return connection


def enqueue(connection: apsw.Connection, bodies: Sequence[bytes]) -> float:
    """Seconds to send all bodies in transactions of 100."""
    began = time.perf_counter()
    for start in range(0, len(bodies), BATCH):
        _send(connection, bodies[start : start + BATCH])
    return time.perf_counter() - began


def drain(connection: apsw.Connection, count: int) -> float:
    """Seconds to claim and delete `count` messages, 100 at a time, each in a transaction of its own."""
    began = time.perf_counter()
    done = 0
    while claimed := _claim(connection):
        _delete(connection, claimed)
        done += len(claimed)
    seconds = time.perf_counter() - began
    assert done == count, f"{done} of {count} messages were delivered"
    return seconds


def drain_with_work(
    connection: apsw.Connection, count: int, results: Sequence[Result], bodies: Sequence[bytes]
) -> float:
    """The same where each message also writes one row of the user's and sends one message, with its delete."""
    began = time.perf_counter()
    done = 0
    while claimed := _claim(connection):
        share = slice(done, done + len(claimed))
        due = _now()
        connection.execute("begin immediate")
        connection.executemany(WRITE, results[share])
        connection.executemany(SEND, [(SENT_TO, due, body) for body in bodies[share]])
        connection.executemany(DELETE, claimed)
        connection.execute("commit")
        done += len(claimed)
    seconds = time.perf_counter() - began
    assert done == count, f"{done} of {count} messages were delivered"
    return seconds


def steady(connection: apsw.Connection, bodies: Sequence[bytes]) -> float:
    """Seconds to send, claim and delete all bodies, hundred after hundred: three transactions each."""
    began = time.perf_counter()
    for start in range(0, len(bodies), BATCH):
        _send(connection, bodies[start : start + BATCH])
        _delete(connection, _claim(connection))
    return time.perf_counter() - began


def send_then_drain(path: Path, bodies: Sequence[bytes]) -> tuple[float, float]:
    with closing(created(path)) as connection:
        return enqueue(connection, bodies), drain(connection, len(bodies))


def send_then_work(path: Path, bodies: Sequence[bytes], results: Sequence[Result], sent: Sequence[bytes]) -> float:
    with closing(created(path)) as connection:
        enqueue(connection, bodies)
        return drain_with_work(connection, len(bodies), results, sent)


def send_while_draining(path: Path, bodies: Sequence[bytes]) -> float:
    with closing(created(path)) as connection:
        return steady(connection, bodies)


def _send(connection: apsw.Connection, bodies: Sequence[bytes]) -> None:
    due = _now()
    connection.execute("begin immediate")
    connection.executemany(SEND, [(QUEUE, due, body) for body in bodies])
    connection.execute("commit")


def _claim(connection: apsw.Connection) -> list[tuple[int]]:
    now = _now()
    connection.execute("begin immediate")
    probe = {"queue": QUEUE, "now": now, "lease_end": now + LEASE_MICROS, "limit": BATCH}
    claimed = connection.execute(CLAIM, probe).fetchall()
    connection.execute("commit")
    return [(row[0],) for row in claimed]


def _delete(connection: apsw.Connection, claimed: Sequence[tuple[int]]) -> None:
    connection.execute("begin immediate")
    connection.executemany(DELETE, claimed)
    connection.execute("commit")


def _now() -> int:
    return time.time_ns() // 1000
