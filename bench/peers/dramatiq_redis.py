"""Dramatiq on Redis with an append-only file that is synced at each write.

Settings from https://dramatiq.io/guide.html and https://dramatiq.io/reference.html (RedisBroker, Worker; eight threads and
the middleware that comes with it).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings


class Peer(Contestant):
    settings = Settings(
        name="dramatiq",
        package="dramatiq",
        store="redis",
        durability="appendfsync always",
        setup="one process with 8 threads, its default",
        documentation=("https://dramatiq.io/guide.html", "https://dramatiq.io/reference.html"),
        share_percent=1.4,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        dramatiq = import_module("dramatiq")
        self._arrived: Arrived | None = None
        self._broker: Any = import_module("dramatiq.brokers.redis").RedisBroker(url=address)

        def handle(number: int, url: str, title: str, sent_at: float) -> None:
            assert self._arrived is not None
            self._arrived(number, sent_at)

        self._actor: Any = dramatiq.actor(handle, actor_name="job", broker=self._broker)

    async def send(self, job: Job) -> None:
        self._actor.send(**job)

    async def work(self, arrived: Arrived) -> None:
        self._arrived = arrived
        import_module("dramatiq").Worker(self._broker, worker_threads=8).start()
