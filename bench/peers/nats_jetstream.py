"""NATS JetStream with a file store and a work queue, pulled a hundred at a time: each message is acknowledged after it ran.

Settings from https://docs.nats.io/nats-concepts/jetstream/streams (work queue, file storage),
https://docs.nats.io/nats-concepts/jetstream/consumers (pull, explicit acks) and https://github.com/nats-io/nats.py.
The server answers a publish before the file is synced, which it does every two minutes: a power cut loses messages.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench.peers.contract import Arrived, Contestant, Job, Settings

STREAM, SUBJECT = "JOBS", "jobs"


class Peer(Contestant):
    settings = Settings(
        name="nats",
        package="nats-py",
        store="nats",
        durability="file, synced every 2 minutes: a power cut loses messages",
        setup="work queue, fetch 100, explicit acks; a batch is 100 in flight",
        documentation=(
            "https://docs.nats.io/nats-concepts/jetstream/streams",
            "https://docs.nats.io/nats-concepts/jetstream/consumers",
            "https://github.com/nats-io/nats.py",
        ),
        share_percent=24.0,
        batches=True,
        synced=False,
    )

    async def open(self, address: str, *, fresh: bool) -> None:
        connection = await import_module("nats").connect(address)
        self._stream: Any = connection.jetstream()
        if fresh:
            await self._stream.add_stream(name=STREAM, subjects=[SUBJECT], retention="workqueue", storage="file")

    async def send(self, job: Job) -> None:
        await self._stream.publish(SUBJECT, json.dumps(job).encode())

    async def send_batch(self, jobs: Sequence[Job]) -> None:
        await asyncio.gather(*(self.send(each) for each in jobs))

    async def work(self, arrived: Arrived) -> None:
        timed_out = import_module("nats.errors").TimeoutError
        pulled = await self._stream.pull_subscribe(SUBJECT, durable="workers")
        while True:
            try:
                messages = await pulled.fetch(100, timeout=5)
            except timed_out:
                continue
            for message in messages:
                job: Job = json.loads(message.data)
                arrived(job["number"], job["sent_at"])
                await message.ack()
