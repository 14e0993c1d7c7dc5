"""Taskiq on a Redis stream, acknowledged after the job, with an append-only file that is synced at each write.

Settings from https://github.com/taskiq-python/taskiq-redis (RedisStreamBroker, the broker with acknowledgements) and
https://taskiq-python.github.io/guide/cli.html (100 tasks at a time; uvloop where it is installed).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings


class Peer(Contestant):
    settings = Settings(
        name="taskiq",
        package="taskiq",
        store="redis",
        durability="appendfsync always, acked when executed",
        setup="RedisStreamBroker, 100 tasks at a time, uvloop",
        documentation=(
            "https://github.com/taskiq-python/taskiq-redis",
            "https://taskiq-python.github.io/guide/cli.html",
        ),
        share_percent=2.1,
        uvloop=True,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        self._arrived: Arrived | None = None
        self._broker: Any = import_module("taskiq_redis").RedisStreamBroker(address)

        async def handle(number: int, url: str, title: str, sent_at: float) -> None:
            assert self._arrived is not None
            self._arrived(number, sent_at)

        self._task: Any = self._broker.register_task(handle, task_name="job")
        self._broker.is_worker_process = not fresh
        await self._broker.startup()

    async def send(self, job: Job) -> None:
        await self._task.kiq(**job)

    async def work(self, arrived: Arrived) -> None:
        self._arrived = arrived
        await import_module("taskiq.api").run_receiver_task(self._broker, max_async_tasks=100)
