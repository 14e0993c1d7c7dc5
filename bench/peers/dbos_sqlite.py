"""DBOS on SQLite: a workflow of one step for each job, taken from a DBOS queue.

Settings from https://docs.dbos.dev/python/reference/queues (polling interval), /python/reference/client (enqueueing from
another process) and /python/reference/configuration (SQLite as the system database). It leaves SQLite's journal as it
comes. Its default poll of one second would make every idle latency half a second; 10 ms is given to it here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings

QUEUE, WORKFLOW = "jobs", "job"
POLL_SECONDS = 0.01


class Peer(Contestant):
    settings = Settings(
        name="dbos",
        package="dbos",
        store="sqlite",
        durability="full: rollback journal, synchronous=FULL",
        setup="a workflow of one step a job; polls every 10 ms (default 1 s)",
        documentation=(
            "https://docs.dbos.dev/python/reference/queues",
            "https://docs.dbos.dev/python/reference/client",
            "https://docs.dbos.dev/python/reference/configuration",
        ),
        share_percent=0.17,
        divided_by=10,
        must_run=True,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        self._url = self.url(address)
        self._dbos: Any = import_module("dbos")
        if fresh:
            # Only an application makes the tables; a client needs them to be there.
            await self._launch(lambda number, sent_at: None, listen=False)
            self._dbos.DBOS.destroy()
            self._client: Any = self._dbos.DBOSClient(system_database_url=self._url)

    def url(self, address: str) -> str:
        return f"sqlite:///{address}"

    async def send(self, job: Job) -> None:
        self._client.enqueue({"queue_name": QUEUE, "workflow_name": WORKFLOW}, **job)

    async def work(self, arrived: Arrived) -> None:
        await self._launch(arrived, listen=True)

    async def _launch(self, arrived: Arrived, *, listen: bool) -> None:
        dbos = self._dbos.DBOS
        dbos(config={"name": "bench", "system_database_url": self._url, "log_level": "ERROR"})

        def handle(number: int, url: str, title: str, sent_at: float) -> None:
            arrived(number, sent_at)

        step = dbos.step(name="handle")(handle)

        def workflow(number: int, url: str, title: str, sent_at: float) -> None:
            step(number, url, title, sent_at)

        dbos.workflow(name=WORKFLOW)(workflow)
        if not listen:
            dbos.listen_queues([])
        dbos.launch()
        await dbos.register_queue_async(QUEUE, polling_interval_sec=POLL_SECONDS)
