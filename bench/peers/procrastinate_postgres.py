"""Procrastinate on PostgreSQL with synchronous_commit=on.

Settings from https://procrastinate.readthedocs.io/en/stable/howto/: basics/worker.html (concurrency),
production/delete_finished_jobs.html (those that succeeded) and basics/batch_defer.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings

GUIDES = "https://procrastinate.readthedocs.io/en/stable/howto"


class Peer(Contestant):
    settings = Settings(
        name="procrastinate",
        package="procrastinate",
        store="postgres",
        durability="fsync=on, synchronous_commit=on",
        setup="20 jobs at a time, those that succeeded are deleted",
        documentation=(
            f"{GUIDES}/basics/worker.html",
            f"{GUIDES}/production/delete_finished_jobs.html",
            f"{GUIDES}/basics/batch_defer.html",
        ),
        share_percent=0.4,
        batches=True,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        procrastinate = import_module("procrastinate")
        self._address = address
        self._arrived: Arrived | None = None
        self._app: Any = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=address))

        async def handle(number: int, url: str, title: str, sent_at: float) -> None:
            assert self._arrived is not None
            self._arrived(number, sent_at)

        self._task: Any = self._app.task(name="job", queue="jobs")(handle)
        await self._app.open_async()
        if fresh:
            await self._app.schema_manager.apply_schema_async()

    async def send(self, job: Job) -> None:
        await self._task.defer_async(**job)

    async def send_batch(self, jobs: Sequence[Job]) -> None:
        await self._task.batch_defer_async(*jobs)

    async def filled(self) -> None:
        # As autovacuum would; without it the plan for an empty table halves the pace.
        connect = import_module("psycopg").AsyncConnection.connect
        async with await connect(self._address, autocommit=True) as connection:
            await connection.execute("vacuum analyze")

    async def work(self, arrived: Arrived) -> None:
        self._arrived = arrived
        await self._app.run_worker_async(
            queues=["jobs"], concurrency=20, delete_jobs="successful", install_signal_handlers=False
        )
