"""A peer's process: takes commands as lines of JSON on stdin and answers each with one line of JSON on stdout.

    python -m bench.peers.session huey_sqlite

Commands: open, send, work, latencies, pace. `time.perf_counter` is the same clock in every process of the machine.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.peers.contract import Contestant, job

BATCH = 100

Answer = dict[str, Any]


class Arrivals:
    """When each handler began. Handlers may run in any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._enough = asyncio.Event()
        self._expected = sys.maxsize
        self.began: list[float] = []
        self.numbers: list[int] = []
        self.latencies: list[float] = []

    def __call__(self, number: int, sent_at: float) -> None:
        now = time.perf_counter()
        self.latencies.append(now - sent_at)
        self.numbers.append(number)
        self.began.append(now)
        if len(self.began) >= self._expected:
            self._loop.call_soon_threadsafe(self._enough.set)

    def expect(self, count: int) -> None:
        """So many, from now on."""
        self.began, self.numbers, self.latencies = [], [], []
        self._enough.clear()
        self._expected = count

    async def all(self) -> None:
        await self._enough.wait()
        # A queue that delivers twice, or leaves out a job meanwhile, is measured doing something else.
        deliveries, jobs = len(self.numbers), len(set(self.numbers))
        assert deliveries == jobs == self._expected, (
            f"{deliveries} deliveries of {jobs} jobs; {self._expected} were sent"
        )


class Session:
    def __init__(self, contestant: Contestant) -> None:
        self._contestant = contestant
        self._arrivals = Arrivals()
        self._working: asyncio.Task[None] | None = None

    async def open(self, *, address: str, fresh: bool) -> Answer:
        await self._contestant.open(address, fresh=fresh)
        return {}

    async def send(self, *, one_by_one: int, batched: int) -> Answer:
        """Seconds for so many jobs, each awaited before the next, and for so many more by the hundred."""
        singles = [job(number) for number in range(one_by_one)]
        rest = [job(number) for number in range(one_by_one, one_by_one + batched)]
        began = time.perf_counter()
        for each in singles:
            await self._contestant.send(each)
        between = time.perf_counter()
        for start in range(0, batched, BATCH):
            await self._contestant.send_batch(rest[start : start + BATCH])
        ended = time.perf_counter()
        await self._contestant.filled()
        return {"one_by_one": between - began, "batched": ended - between}

    async def work(self, *, count: int) -> Answer:
        """Start the one worker. Seconds from the first handler's start to the last one's."""
        self._arrivals.expect(count)
        self._working = asyncio.create_task(self._contestant.work(self._arrivals))
        await self._arrived()
        return {"seconds": self._arrivals.began[-1] - self._arrivals.began[0]}

    async def expect(self, *, count: int) -> Answer:
        """To be answered before the first of these jobs is sent."""
        self._arrivals.expect(count)
        return {}

    async def latencies(self) -> Answer:
        await self._arrived()
        return {"seconds": self._arrivals.latencies}

    async def pace(self, *, pauses: list[float]) -> Answer:
        """Send a job after each pause, whether or not the one before it has arrived."""
        for number, pause in enumerate(pauses):
            await asyncio.sleep(pause)
            await self._contestant.send(job(number, sent_at=time.perf_counter()))
        return {}

    async def _arrived(self) -> None:
        assert self._working is not None
        arrived = asyncio.ensure_future(self._arrivals.all())
        await asyncio.wait({arrived, self._working}, return_when=asyncio.FIRST_COMPLETED)
        if self._working.done():
            self._working.result()  # a worker that failed says so; one with threads of its own goes on
        await arrived

    async def run(self, answer: Callable[[Answer], None]) -> None:
        loop = asyncio.get_running_loop()
        reader = ThreadPoolExecutor(1)  # its own: DBOS replaces and closes the loop's
        while line := await loop.run_in_executor(reader, sys.stdin.readline):
            command: dict[str, Any] = json.loads(line)
            verb: Callable[..., Awaitable[Answer]] = getattr(self, command.pop("do"))
            try:
                answer(await verb(**command))
            except Exception as error:
                answer({"error": f"{type(error).__name__}: {error}"})
                raise


def main() -> None:
    # Peers print what they like; only answers go to where answers are read.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    contestant: Contestant = importlib.import_module(f"bench.peers.{sys.argv[1]}").Peer()

    def answer(values: Answer) -> None:
        answers.write(json.dumps(values) + "\n")
        answers.flush()

    async def talk() -> None:
        await Session(contestant).run(answer)

    loop_factory = importlib.import_module("uvloop").new_event_loop if contestant.settings.uvloop else None
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            runner.run(_then_leave(talk()))
    finally:
        os._exit(1)


async def _then_leave(talk: Awaitable[None]) -> None:
    """Threads, pools and connections of a peer are of no use any more, and some of them take seconds to close."""
    await talk
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
