"""The raw bound of workflows: what a careful programmer reaches with one writing thread and group commit, and nothing else.

A run of five steps needs seven durable commits: its row, each step's result before the next step begins, and its end. Runs
that wait at the same time share a transaction. There is no claim, no recovery, no retry, no timer and no fence: the bound
only shows what the disk, the database and one event loop allow.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from queue import SimpleQueue
from typing import Any, Protocol

import apsw
import psycopg

from bench.place import Place
from bench.workflows_shape import Shape

INPUT = RESULT = b'{"number":1234}'
STEP_RESULT = b"1234"
CREATE = """
create table runs (
  id bigint primary key,
  state text not null,
  input {bytes} not null,
  created_at bigint not null,
  result {bytes},
  ended_at bigint
);
create table steps (
  run bigint not null,
  position integer not null,
  name text not null,
  result {bytes} not null,
  ended_at bigint not null,
  primary key (run, position)
){end};
"""
ENDED = "select count(*) from runs where state = 'complete'"
SAVED = "select count(*) from steps"

Begun = tuple[int, bytes, int]
Step = tuple[int, int, str, bytes, int]
Ended = tuple[bytes, int, int]


class Group:
    """What one transaction makes durable, and who waits for it."""

    __slots__ = ("begun", "ended", "steps", "waiting")

    def __init__(self) -> None:
        self.begun: list[Begun] = []
        self.steps: list[Step] = []
        self.ended: list[Ended] = []
        self.waiting: list[asyncio.Future[None]] = []


class Database(Protocol):
    """Lives in the writer's thread."""

    def save(self, group: Group) -> None: ...
    def close(self) -> None: ...


class SqliteDatabase:
    BEGIN = "insert into runs (id, state, input, created_at) values (?, 'active', ?, ?)"
    STEP = "insert into steps (run, position, name, result, ended_at) values (?, ?, ?, ?, ?)"
    END = "update runs set state = 'complete', result = ?, ended_at = ? where id = ?"

    def __init__(self, place: Place) -> None:
        self._connection = apsw.Connection(place.database)
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", "full")
        self._connection.pragma("wal_autocheckpoint", 4_000)
        self._connection.execute(CREATE.format(bytes="blob", end=" without rowid"))

    def save(self, group: Group) -> None:
        connection = self._connection
        connection.execute("begin immediate")
        for statement, rows in ((self.BEGIN, group.begun), (self.STEP, group.steps), (self.END, group.ended)):
            if rows:
                connection.executemany(statement, rows)
        connection.execute("commit")

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase:
    BEGIN = """
    insert into runs (id, state, input, created_at)
    select id, 'active', input, created_at
    from unnest(%s::bigint[], %s::bytea[], %s::bigint[]) as begun (id, input, created_at)
    """
    STEP = """
    insert into steps (run, position, name, result, ended_at)
    select run, position, name, result, ended_at
    from unnest(%s::bigint[], %s::integer[], %s::text[], %s::bytea[], %s::bigint[])
    as saved (run, position, name, result, ended_at)
    """
    END = """
    update runs
    set state = 'complete', result = ended.result, ended_at = ended.ended_at
    from unnest(%s::bytea[], %s::bigint[], %s::bigint[]) as ended (result, ended_at, id)
    where runs.id = ended.id
    """

    def __init__(self, place: Place) -> None:
        self._connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(
            place.database, autocommit=True, prepare_threshold=1
        )
        self._connection.execute(CREATE.format(bytes="bytea", end="").encode())

    def save(self, group: Group) -> None:
        # In one pipeline, which is one transaction and one way there and back.
        with self._connection.pipeline(), self._connection.transaction():
            for statement, rows in ((self.BEGIN, group.begun), (self.STEP, group.steps), (self.END, group.ended)):
                if rows:
                    self._connection.execute(statement.encode(), [*map(list, zip(*rows, strict=True))], binary=True)

    def close(self) -> None:
        self._connection.close()


class GroupCommit:
    """One thread that writes. Whatever comes while it commits waits for the next transaction, all of it together."""

    def __init__(self, open_database: Callable[[], Database]) -> None:
        self._loop = asyncio.get_running_loop()
        self._open_database = open_database
        self._next = Group()
        self._busy = False
        self._groups: SimpleQueue[Group | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def group(self, waiting: asyncio.Future[None]) -> Group:
        """Where to put what is to be saved."""
        group = self._next
        if not group.waiting and not self._busy:
            self._loop.call_soon(self._hand_over)
        group.waiting.append(waiting)
        return group

    def _hand_over(self) -> None:
        if not self._busy and self._next.waiting:
            group, self._next = self._next, Group()
            self._busy = True
            self._groups.put(group)

    def _serve(self) -> None:
        with closing(self._open_database()) as database:
            while (group := self._groups.get()) is not None:
                error: Exception | None = None
                try:
                    database.save(group)
                except Exception as raised:
                    error = raised
                self._loop.call_soon_threadsafe(self._saved, group, error)

    def _saved(self, group: Group, error: Exception | None) -> None:
        self._busy = False
        for waiting in group.waiting:
            if error is None:
                waiting.set_result(None)
            else:
                waiting.set_exception(error)
        # Whoever was woken adds to the next group before it is handed over.
        self._loop.call_soon(self._hand_over)

    def close(self) -> None:
        self._groups.put(None)
        self._thread.join()


def seconds(place: Place, shape: Shape) -> float:
    """For so many runs, of which so many are always under way."""
    names = [f"step-{number}" for number in range(shape.steps)]

    async def client(writer: GroupCommit, numbers: Iterator[int]) -> None:
        loop = asyncio.get_running_loop()
        for number in numbers:
            saved = loop.create_future()
            writer.group(saved).begun.append((number, INPUT, _now()))
            await saved
            for position, name in enumerate(names):
                saved = loop.create_future()
                writer.group(saved).steps.append((number, position, name, STEP_RESULT, _now()))
                await saved
            saved = loop.create_future()
            writer.group(saved).ended.append((RESULT, _now(), number))
            await saved

    async def measured() -> float:
        kind = PostgresDatabase if place.store == "postgres" else SqliteDatabase
        with closing(GroupCommit(lambda: kind(place))) as writer:
            numbers = iter(range(shape.runs))
            began = time.perf_counter()
            async with asyncio.TaskGroup() as tasks:
                for _ in range(min(shape.at_once, shape.runs)):
                    tasks.create_task(client(writer, numbers))
            return time.perf_counter() - began

    taken = asyncio.run(measured())
    (ended,), (saved,) = place.row(ENDED), place.row(SAVED)
    assert (ended, saved) == (shape.runs, shape.runs * shape.steps), f"{ended} runs have ended, with {saved} steps"
    return taken


def _now() -> int:
    return time.time_ns() // 1000
