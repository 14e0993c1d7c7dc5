"""Penstock's own turn among the workflows, in a process of its own: full durability and its defaults, history included.

    python -m bench.workflows_penstock DATABASE FOLDER STEPS AT_ONCE RUNS

So many clients each start a run in a unit of their own, wait until its end is committed, and start the next.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any

import penstock as ps
from bench.place import Place
from bench.watch import WatchedApp
from bench.workflows_shape import Shape
from penstock.cli.worker import GARBAGE_THRESHOLD

WARM_UP_RUNS = 20
ENDED = "select count(*) from penstock.penstock_runs where state = 'complete'"
SAVED = "select count(*) from penstock.penstock_steps where state = 'done'"


async def _nothing(number: int) -> int:
    return number


class Clients:
    """Keep so many runs under way. A run has ended once its end is committed, which the writer's thread sees."""

    def __init__(self, app: WatchedApp, shape: Shape) -> None:
        self._app = app
        self._loop = asyncio.get_running_loop()
        self._ended: dict[bytes, asyncio.Future[None]] = {}
        self._at_once = shape.at_once
        names = [f"step-{number}" for number in range(shape.steps)]

        @app.workflow(name="steps", parallel=shape.at_once)
        async def flow(run: ps.Run, number: int) -> int:
            for name in names:
                await run.step(name, _nothing, number)
            return number

        self._workflow = flow

    def watch(self) -> None:
        self._app.writer.ledger.when_ended = lambda keys: self._loop.call_soon_threadsafe(self._tell, keys)

    def _tell(self, keys: list[bytes]) -> None:
        for key in keys:
            self._ended.pop(key).set_result(None)

    async def run(self, runs: int) -> float:
        """Seconds from before the first start to the last end."""
        numbers = iter(range(runs))
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for _ in range(min(self._at_once, runs)):
                tasks.create_task(self._client(numbers))
        return time.perf_counter() - began

    async def _client(self, numbers: Iterator[int]) -> None:
        for number in numbers:
            ended: asyncio.Future[None] = self._loop.create_future()
            async with self._app.unit():
                self._ended[self._workflow.start(number).key] = ended
            await ended


async def measured(place: Place, shape: Shape) -> float:
    app = WatchedApp(place, history=True)
    clients = Clients(app, shape)
    await app._opened()
    clients.watch()
    running = asyncio.ensure_future(app.run())
    try:
        await _unless_stopped(clients.run(WARM_UP_RUNS), running)
        return await _unless_stopped(clients.run(shape.runs), running)
    finally:
        app.stop()
        await running


async def _unless_stopped(work: Coroutine[Any, Any, float], running: asyncio.Future[None]) -> float:
    """A run that fails stops the app, and its client would wait for ever."""
    doing = asyncio.ensure_future(work)
    both: set[asyncio.Future[Any]] = {doing, running}
    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    assert doing.done(), "a run failed, and the app has stopped"
    return doing.result()


def check(place: Place, shape: Shape) -> None:
    """Work that was not done is quick."""
    runs = shape.runs + WARM_UP_RUNS
    (ended,), (saved,) = place.row(ENDED), place.row(SAVED)
    assert (ended, saved) == (runs, runs * shape.steps), f"{ended} of {runs} runs have ended, with {saved} steps"


def main() -> None:
    place, shape = Place(sys.argv[1], Path(sys.argv[2])), Shape(*map(int, sys.argv[3:]))
    gc.set_threshold(GARBAGE_THRESHOLD)  # as a worker process of `penstock run` sets itself up
    seconds = asyncio.run(measured(place, shape))
    check(place, shape)
    print(json.dumps({"seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
