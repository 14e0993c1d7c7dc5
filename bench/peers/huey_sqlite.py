"""Huey on SQLite: one thread, one commit to take a job, which deletes it: at most once.

Settings from https://huey.readthedocs.io/en/latest/api.html (SqliteStorage: `fsync=True` is synchronous=FULL) and
https://huey.readthedocs.io/en/latest/consumer.html (one worker thread; the rest as it comes, with a poll of 0.1 s).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings


class Peer(Contestant):
    settings = Settings(
        name="huey",
        package="huey",
        store="sqlite",
        durability="full: WAL, synchronous=FULL; at most once",
        setup="one worker thread; polls every 100 ms, its default",
        documentation=(
            "https://huey.readthedocs.io/en/latest/api.html",
            "https://huey.readthedocs.io/en/latest/consumer.html",
        ),
        share_percent=3.4,
        must_run=True,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        self._arrived: Arrived | None = None
        self._huey: Any = import_module("huey").SqliteHuey("bench", filename=address, fsync=True, journal_mode="wal")

        def handle(number: int, url: str, title: str, sent_at: float) -> None:
            assert self._arrived is not None
            self._arrived(number, sent_at)

        self._task: Any = self._huey.task(name="job")(handle)

    async def send(self, job: Job) -> None:
        self._task(**job)

    async def work(self, arrived: Arrived) -> None:
        self._arrived = arrived
        self._huey.create_consumer(workers=1, worker_type="thread").start()
