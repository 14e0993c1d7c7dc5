"""DBOS's turn among the workflows, in a process of its own: no-op steps, each recorded before the next begins.

    python -m bench.peers.dbos_workflows '{"address": ..., "setting": {...}, "steps": 5, "at_once": 100, "runs": 300}'

Settings from https://docs.dbos.dev/python/reference/configuration (pool size, executor threads),
https://docs.dbos.dev/python/tutorials/workflow-tutorial (calling and starting workflows, async ones) and
https://docs.dbos.dev/python/reference/queues (worker concurrency, polling interval). Which of them is the fastest differs
from store to store and with the number of runs at once, so a sweep comes first and only the best takes part. SQLite's journal
cannot be set through DBOS, which leaves it as the file has it: a file that has a write-ahead log keeps it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from typing import Any

PACKAGE = "dbos"
WARM_UP_RUNS = 5
POLL_SECONDS = 0.01  # of the queue; by default it is one second
LOOK_SECONDS = 0.02  # for the end of a run that went through the queue
PATIENCE_SECONDS = 600  # for a connection of the pool: a thousand runs may wait for one
QUEUE = "runs"


@dataclass(frozen=True, slots=True)
class Setting:
    """`how` is "called" (each run in a thread that calls the workflow), "awaited" (each in a task that awaits an async one),
    "started" (`start_workflow`), "started async", or "queued". Without `pool` and `threads` DBOS has its own: 20 connections,
    and as many threads as there is work. On SQLite, `wal` gives the file a write-ahead log."""

    how: str
    pool: int | None = None
    threads: int | None = None
    wal: bool = False

    def __str__(self) -> str:
        said = [self.how]
        said += [f"pool of {self.pool}"] if self.pool else []
        said += [f"{self.threads} threads"] if self.threads else []
        said += ["WAL"] if self.wal else []
        return ", ".join(said)


SETTINGS: dict[str, tuple[Setting, ...]] = {
    "sqlite": (
        Setting("called"),
        Setting("awaited"),
        Setting("called", wal=True),
        Setting("called", pool=1, wal=True),
        Setting("awaited", wal=True),
        Setting("awaited", pool=1, threads=4, wal=True),
        Setting("started", pool=1, wal=True),
        Setting("queued", pool=1, wal=True),
    ),
    "postgres": (
        Setting("called"),
        Setting("called", pool=5),
        Setting("awaited"),
        Setting("awaited", threads=8),
        Setting("started"),
        Setting("started async", threads=8),
        Setting("queued"),
    ),
}
ASYNC = ("awaited", "started async")


COUNTS = {
    "sqlite": (
        "select count(*) from workflow_status where status = 'SUCCESS'",
        "select count(*) from operation_outputs",
    ),
    "postgres": (
        "select count(*) from dbos.workflow_status where status = 'SUCCESS'",
        "select count(*) from dbos.operation_outputs",
    ),
}


class Plain:
    """A plain workflow, and clients in threads that keep so many runs of it under way."""

    def __init__(self, dbos: Any, how: str, steps: int, at_once: int) -> None:
        self._dbos = dbos
        self._how = how
        self._at_once = at_once
        self._lock = threading.Lock()

        def nothing(number: int) -> int:
            return number

        step = dbos.step(name="nothing")(nothing)

        def flow(number: int) -> int:
            for _ in range(steps):
                step(number)
            return number

        self._workflow = dbos.workflow(name="steps")(flow)

    def seconds(self, runs: int) -> float:
        self._dbos.launch()
        if self._how == "queued":
            self._dbos.register_queue(QUEUE, worker_concurrency=self._at_once, polling_interval_sec=POLL_SECONDS)
        self._run(WARM_UP_RUNS)
        began = time.perf_counter()
        self._run(runs)
        return time.perf_counter() - began

    def _run(self, runs: int) -> None:
        numbers = iter(range(runs))
        if self._how == "queued":
            handles = [self._dbos.enqueue_workflow(QUEUE, self._workflow, number) for number in numbers]
            for handle in handles:
                handle.get_result(polling_interval_sec=LOOK_SECONDS)
            return
        clients = min(self._at_once, runs)
        threads = [threading.Thread(target=self._client, args=(numbers,)) for _ in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _client(self, numbers: Iterator[int]) -> None:
        while True:
            with self._lock:
                number = next(numbers, None)
            if number is None:
                return
            if self._how == "called":
                self._workflow(number)
            else:
                self._dbos.start_workflow(self._workflow, number).get_result()


class Async:
    """An async workflow, and clients in tasks."""

    def __init__(self, dbos: Any, how: str, steps: int, at_once: int) -> None:
        self._dbos = dbos
        self._how = how
        self._at_once = at_once

        async def nothing(number: int) -> int:
            return number

        step = dbos.step(name="nothing")(nothing)

        async def flow(number: int) -> int:
            for _ in range(steps):
                await step(number)
            return number

        self._workflow = dbos.workflow(name="steps")(flow)

    def seconds(self, runs: int) -> float:
        async def measured() -> float:
            self._dbos.launch()
            await self._run(WARM_UP_RUNS)
            began = time.perf_counter()
            await self._run(runs)
            return time.perf_counter() - began

        return asyncio.run(measured())

    async def _run(self, runs: int) -> None:
        numbers = iter(range(runs))
        await asyncio.gather(*(self._client(numbers) for _ in range(min(self._at_once, runs))))

    async def _client(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            if self._how == "awaited":
                await self._workflow(number)
            else:
                await (await self._dbos.start_workflow_async(self._workflow, number)).get_result()


def measured(address: str, setting: Setting, *, steps: int, at_once: int, runs: int) -> float:
    """Seconds for so many runs, of which so many are always under way."""
    store = "postgres" if "://" in address else "sqlite"
    url = address if store == "postgres" else f"sqlite:///{address}"
    if setting.wal:
        with closing(sqlite3.connect(address)) as file:
            file.execute("pragma journal_mode = wal")
    config: dict[str, Any] = {"name": "bench", "system_database_url": url, "log_level": "ERROR"}
    config["db_engine_kwargs"] = {"pool_timeout": PATIENCE_SECONDS}
    if setting.pool:
        config["sys_db_pool_size"] = setting.pool
    if setting.threads:
        config["max_executor_threads"] = setting.threads
    dbos: Any = import_module("dbos").DBOS
    dbos(config=config)
    kind = Async if setting.how in ASYNC else Plain
    seconds = kind(dbos, setting.how, steps, at_once).seconds(runs)
    _check(dbos, store, runs + WARM_UP_RUNS, steps)
    return seconds


def _check(dbos: Any, store: str, runs: int, steps: int) -> None:
    """Work that was not done is quick, and so is what is not synced."""
    text = import_module("sqlalchemy").text
    with import_module("dbos._dbos")._get_dbos_instance()._sys_db.engine.connect() as connection:
        found = tuple(connection.execute(text(query)).scalar() for query in COUNTS[store])
        said = "pragma synchronous" if store == "sqlite" else "show synchronous_commit"
        level = str(connection.execute(text(said)).scalar())
    assert found == (runs, runs * steps), f"runs that have ended, and steps, are {found}; {runs} runs were started"
    assert level in ("2", "on"), f"{said} is {level}: it must be full"


def main() -> None:
    # It prints what it likes; only the answer goes to where answers are read.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    asked = json.loads(sys.argv[1])
    asked["setting"] = Setting(**asked["setting"])
    answer = {"seconds": measured(**asked)}
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
    os._exit(0)  # its threads and pools take seconds to close


if __name__ == "__main__":
    main()
