"""streaQ on a Redis stream with an append-only file that is synced at each write.

Settings from https://streaq.readthedocs.io/en/latest/worker.html (concurrency) and
https://streaq.readthedocs.io/en/latest/task.html (enqueue, enqueue_many).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings


class Peer(Contestant):
    settings = Settings(
        name="streaq",
        package="streaq",
        store="redis",
        durability="appendfsync always",
        setup="64 tasks at a time, uvloop; keeps results for 5 minutes, its default",
        documentation=(
            "https://streaq.readthedocs.io/en/latest/worker.html",
            "https://streaq.readthedocs.io/en/latest/task.html",
        ),
        share_percent=1.0,
        batches=True,
        uvloop=True,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        self._arrived: Arrived | None = None
        self._worker: Any = import_module("streaq").Worker(redis_url=address, concurrency=64, handle_signals=False)

        async def handle(number: int, url: str, title: str, sent_at: float) -> None:
            assert self._arrived is not None
            self._arrived(number, sent_at)

        self._task: Any = self._worker.task(handle)
        if fresh:
            await self._worker.__aenter__()  # for as long as the process lives

    async def send(self, job: Job) -> None:
        await self._task.enqueue(**job)

    async def send_batch(self, jobs: Sequence[Job]) -> None:
        await self._worker.enqueue_many([self._task.enqueue(**each) for each in jobs])

    async def work(self, arrived: Arrived) -> None:
        self._arrived = arrived
        await self._worker.run_async()
