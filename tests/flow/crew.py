"""Several workers on one file in one virtual loop, each with an app of its own, to be killed, paused and replaced."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

import penstock as ps
from penstock.model.times import to_micros
from penstock.testing import TestApp
from penstock.testing.harness import Trap
from penstock.testing.loop import VirtualTime
from penstock.testing.process import Process
from penstock.testing.surroundings import VirtualHost

LOOK_SECONDS = 1.0  # how often each looks for neighbours that died, as a real worker does


class Crew:
    """Bells ring at once. A post that was stopped or killed stays empty until it is manned again."""

    def __init__(
        self,
        made: Callable[[], ps.App],
        folder: Path,
        *,
        workers: int,
        start: datetime | None = None,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._made = made
        self._database = TestApp.new_database() if TestApp.new_database else str(folder / "crew.db")
        self._workers = workers
        self._start = start
        self._look_seconds = look_seconds
        self._numbers = 0
        self.apps: dict[int, ps.App] = {}
        self._processes: dict[int, Process] = {}
        self._traps: dict[int, Trap] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Crew:
        self._host = VirtualHost()
        self._time = VirtualTime(self._host.loop)
        if self._start is not None:
            self._time.jump((to_micros(self._start) - self._time.clock.now()) / 1_000_000)
        for post in range(self._workers):
            await self.man(post)
        return self

    async def __aexit__(self, *_: object) -> None:
        for post, process in self._processes.items():
            if not process.dead and post in self._running:
                await self.stop(post)
            elif not process.dead and self.apps[post]._life.engine is not None:
                await process.start(self.apps[post].close())
        self._host.dispose()

    async def man(self, post: int, *, visits: bool = False) -> None:
        """A new worker takes the post; one who only visits opens the database and runs nothing."""
        self._numbers += 1
        process = self._host.process(f"worker {self._numbers}")
        trap = Trap(process)
        app = self._made()
        app.database = self._database
        app.config = msgspec.structs.replace(app.config, synchronous="off")
        surroundings = self._host.surroundings(process, trap, tick_seconds=self._look_seconds)
        process.owns(await process.start(app._open(surroundings)))
        self.apps[post], self._processes[post], self._traps[post] = app, process, trap
        if not visits:
            self._running[post] = process.start(app.run())
        await self._host.loop.settle()

    async def stop(self, post: int) -> None:
        """It hands back what it holds and leaves."""
        running = self._running.pop(post)
        self.apps[post].stop()
        await asyncio.wait([running])
        running.result()

    def kill(self, post: int) -> None:
        self._running.pop(post, None)
        self._processes[post].kill()

    def pause(self, post: int) -> None:
        self._processes[post].pause()

    def resume(self, post: int) -> None:
        self._processes[post].resume()

    def crash(self, post: int, *, at: str, nth: int = 1) -> None:
        self._traps[post].arm(at, nth=nth)

    def is_dead(self, post: int) -> bool:
        return self._processes[post].dead

    def jump(self, *, days: float) -> None:
        self._time.jump(days * 86_400)

    async def advance(self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0) -> None:
        await asyncio.sleep(seconds + 60 * minutes + 3_600 * hours + 86_400 * days + 0.001)
        for running in self._running.values():
            if running.done() and not running.cancelled() and running.exception() is not None:
                running.result()

    async def inside(self, post: int, work: Callable[[], Any]) -> Any:
        """Does something as a part of that worker's process."""

        async def do() -> Any:
            return await work()

        return await self._processes[post].start(do())
