"""PgQueuer on PostgreSQL with synchronous_commit=on and all its tables logged.

Settings from https://janbjorge.github.io/pgqueuer/: guides/performance-tuning (batch size), reference/drivers (asyncpg) and
reference/database-setup (the tables' durability, whose default is `durable`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings

ENTRYPOINT = "job"
PAGES = "https://janbjorge.github.io/pgqueuer"


class Peer(Contestant):
    settings = Settings(
        name="pgqueuer",
        package="pgqueuer",
        store="postgres",
        durability="fsync=on, synchronous_commit=on, tables `durable`",
        setup="batches of 100, asyncpg, uvloop",
        documentation=(
            f"{PAGES}/guides/performance-tuning/",
            f"{PAGES}/reference/drivers/",
            f"{PAGES}/reference/database-setup/",
        ),
        share_percent=10.9,
        batches=True,
        uvloop=True,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        pgqueuer = import_module("pgqueuer")
        self._connection: Any = await import_module("asyncpg").connect(address)
        self._driver: Any = pgqueuer.AsyncpgDriver(self._connection)
        self._queries: Any = pgqueuer.Queries(self._driver)
        if fresh:
            await self._queries.install()

    async def send(self, job: Job) -> None:
        await self._queries.enqueue(ENTRYPOINT, json.dumps(job).encode())

    async def send_batch(self, jobs: Sequence[Job]) -> None:
        count = len(jobs)
        await self._queries.enqueue([ENTRYPOINT] * count, [json.dumps(each).encode() for each in jobs], [0] * count)

    async def filled(self) -> None:
        await self._connection.execute("vacuum analyze")  # as autovacuum would

    async def work(self, arrived: Arrived) -> None:
        queuer = import_module("pgqueuer").PgQueuer(self._driver)

        async def handle(taken: Any) -> None:
            job: Job = json.loads(taken.payload)
            arrived(job["number"], job["sent_at"])

        queuer.entrypoint(ENTRYPOINT)(handle)
        await queuer.run(batch_size=100)
