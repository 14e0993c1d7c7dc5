"""Celery on Redis with an append-only file that is synced at each write; a job is acknowledged after it ran.

Settings from https://docs.celeryq.dev/en/stable/userguide/configuration.html (task_acks_late, task_ignore_result,
worker_prefetch_multiplier) and https://docs.celeryq.dev/en/stable/userguide/optimizing.html (prefetch limits).
"""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings


class Peer(Contestant):
    settings = Settings(
        name="celery",
        package="celery",
        store="redis",
        durability="appendfsync always, acks_late",
        setup="solo pool, prefetch 64, no results",
        documentation=(
            "https://docs.celeryq.dev/en/stable/userguide/configuration.html",
            "https://docs.celeryq.dev/en/stable/userguide/optimizing.html",
        ),
        share_percent=2.0,
        share_seen=(0.5, 2.8),  # taken while the disk changed its pace; on a fast one it is 0.5
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        self._arrived: Arrived | None = None
        self._app: Any = import_module("celery").Celery("bench", broker=address)
        self._app.conf.update(
            task_acks_late=True,
            task_ignore_result=True,
            worker_prefetch_multiplier=64,
            worker_concurrency=1,
            worker_hijack_root_logger=False,
        )

        def handle(number: int, url: str, title: str, sent_at: float) -> None:
            assert self._arrived is not None
            self._arrived(number, sent_at)

        self._task: Any = self._app.task(name="job")(handle)

    async def send(self, job: Job) -> None:
        self._task.apply_async(kwargs=job)

    async def work(self, arrived: Arrived) -> None:
        self._arrived = arrived
        worker = self._app.Worker(pool="solo", concurrency=1, loglevel="ERROR", quiet=True)
        threading.Thread(target=worker.start, daemon=True).start()
