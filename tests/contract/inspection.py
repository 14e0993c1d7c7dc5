"""A look behind a store's contract, for tests: rows and counters as they are, and the sums they must add up to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apsw

from tests.postgres import look


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A row that waits or is held."""

    seq: int
    id: bytes
    queue: str
    priority: int
    due: int
    token: int
    worker: int | None
    attempts: int
    crashes: int
    body: bytes
    error_class: str | None


@dataclass(frozen=True, slots=True)
class DeadRow:
    id: bytes
    queue: str
    attempts: int
    crashes: int
    reason: str
    error_class: str | None
    error_message: str | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Counted:
    """The counters of one queue, summed over all who wrote them."""

    sent: int = 0
    acked: int = 0
    dead: int = 0
    purged: int = 0
    expired: int = 0


class Inspect(Protocol):
    """One implementation a store; test bodies know no store's SQL."""

    def messages(self) -> list[MessageRow]: ...
    def dead(self) -> list[DeadRow]: ...
    def counted(self) -> dict[str, Counted]: ...
    def counters_of(self, worker: int) -> int:
        """How many rows of counters this worker still has to its name."""
        ...

    def token(self) -> int: ...
    def pause(self, queue: str, paused: bool = True) -> None: ...
    def once_keys(self) -> list[str]: ...
    def kept_count(self, table: str) -> int: ...
    def usage(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        """Executions, rows read and rows written by (month, task)."""
        ...

    def is_sound(self) -> bool:
        """Whether the store finds nothing wrong with its own files."""
        ...


def check_conservation(inspect: Inspect) -> None:
    """sent = acked + waiting and held + dead + purged + expired, per queue, recomputed from rows."""
    rows: dict[str, int] = {}
    for row in inspect.messages():
        rows[row.queue] = rows.get(row.queue, 0) + 1
    dead: dict[str, int] = {}
    for letter in inspect.dead():
        dead[letter.queue] = dead.get(letter.queue, 0) + 1
    counted = inspect.counted()
    for queue in counted.keys() | rows.keys() | dead.keys():
        of = counted.get(queue, Counted())
        there = rows.get(queue, 0)
        assert of.dead == dead.get(queue, 0), f"{queue}: {of} but {dead.get(queue, 0)} dead letters"
        assert of.sent == of.acked + there + of.dead + of.purged + of.expired, f"{queue}: {of}, {there} rows"


class _Inspect:
    """Reads through a connection of its own that holds no snapshot between two looks."""

    def _rows(self, sql: str, *bound: object) -> list[tuple[Any, ...]]:
        raise NotImplementedError

    def messages(self) -> list[MessageRow]:
        found = self._rows(
            "select seq, id, queue, priority, due, token, worker, attempts, crashes, body, error_class "
            "from penstock_messages order by seq"
        )
        return [MessageRow(*row) for row in found]

    def dead(self) -> list[DeadRow]:
        found = self._rows(
            "select id, queue, attempts, crashes, reason, error_class, error_message, body from penstock_dead "
            "where resolution is null order by seq"
        )
        return [DeadRow(*row) for row in found]

    def counted(self) -> dict[str, Counted]:
        found = self._rows(
            "select queue, sum(sent), sum(acked), sum(dead), sum(purged), sum(expired) from penstock_counters group by 1"
        )
        return {queue: Counted(*counts) for queue, *counts in found}

    def counters_of(self, worker: int) -> int:
        return int(self._rows("select count(*) from penstock_counters where worker = ?", worker)[0][0])

    def once_keys(self) -> list[str]:
        return [key for (key,) in self._rows("select key from penstock_once order by key")]

    def kept_count(self, table: str) -> int:
        return int(self._rows("select total from penstock_counts where name = ?", table)[0][0])

    def usage(self) -> dict[tuple[str, str], tuple[int, int, int]]:
        found = self._rows(
            "select month, task, sum(executions), sum(rows_read), sum(rows_written) from penstock_usage group by 1, 2"
        )
        return {(month, task): (executions, reads, writes) for month, task, executions, reads, writes in found}


class SqliteInspect(_Inspect):
    def __init__(self, path: Path) -> None:
        self._path = path

    def token(self) -> int:
        return int(self._rows("select last from penstock_tokens")[0][0])

    def pause(self, queue: str, paused: bool = True) -> None:
        self._rows("update penstock_queues set paused = ? where name = ?", int(paused), queue)

    def is_sound(self) -> bool:
        return self._rows("pragma integrity_check") == [("ok",)]

    def _rows(self, sql: str, *bound: object) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self._path))
        try:
            connection.set_busy_timeout(10_000)
            return connection.execute(sql, bound).fetchall()
        finally:
            connection.close()


class PostgresInspect(_Inspect):
    def __init__(self, url: str) -> None:
        self._url = url

    def token(self) -> int:
        return int(self._rows("select last_value from penstock_tokens")[0][0])

    def pause(self, queue: str, paused: bool = True) -> None:
        self._rows("update penstock_queues set paused = ? where name = ?", int(paused), queue)

    def is_sound(self) -> bool:
        return True  # a server looks after its own files

    def _rows(self, sql: str, *bound: object) -> list[tuple[Any, ...]]:
        return look(self._url, sql.replace("?", "%s"), *bound)
