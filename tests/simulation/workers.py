"""Workers of a simulated world: an app with the queues of its plan, and a look at whoever is on the processor."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Protocol

import penstock as ps
from penstock.config import Config
from penstock.queues.batch import Batch
from penstock.queues.queue import Queue
from penstock.testing.process import Process
from tests.simulation.apps import StagedApp
from tests.simulation.model import Crew, Run
from tests.simulation.plan import Plan, QueuePlan


class Job(ps.Event):
    """`key` tells the whole story of a message: p3.1.0 is the first child of the second job of order 3."""

    key: str
    depth: int = 0
    edited: int = 0


HANDLERS = ("one", "two")


class Handling(Protocol):
    """Who runs what is delivered."""

    async def handle(self, app: SimulatedApp, job: Job, message: ps.Message[Job]) -> object: ...
    async def handle_batch(self, app: SimulatedApp, batch: Batch[Job]) -> object: ...


class SimulatedApp(StagedApp):
    def __init__(
        self,
        plan: Plan,
        served: Sequence[int],
        database: Path,
        process: Process,
        *,
        order: Random | None,
        handlers: Handling,
    ) -> None:
        limits = {
            "retry_first_seconds": plan.retry_first,
            "retry_longest_seconds": plan.retry_first * 4,
        }
        config = Config(synchronous="off", history=plan.history, overrides=limits)
        super().__init__(database, process, config, order=order)
        self.by_number: list[Queue[Job]] = [self._declare(queue) for queue in plan.queues]
        for number in served:
            planned, queue = plan.queues[number], self.by_number[number]
            if planned.batch > 1:
                self._serve_batches(queue, handlers)
            elif not planned.pulled:
                self._serve(queue, handlers, HANDLERS[: planned.handlers])

    def _declare(self, planned: QueuePlan) -> Queue[Job]:
        return self.queue(
            planned.name,
            Job,
            parallel=planned.parallel,
            retries=planned.retries,
            timeout=planned.wall,
            crashes_max=planned.crashes_max,
            batch=planned.batch,
            batch_wait=planned.wait,
            rate=planned.rate,
            messages_max=planned.messages_max,
            retention=planned.retention,
        )

    def _serve(self, queue: Queue[Job], handlers: Handling, names: Sequence[str]) -> None:
        async def on_job(job: Job, message: ps.Message[Job]) -> object:
            return await handlers.handle(self, job, message)

        for name in names:
            queue.handler(Job, name=name)(on_job)

    def _serve_batches(self, queue: Queue[Job], handlers: Handling) -> None:
        async def on_jobs(batch: Batch[Job]) -> object:
            return await handlers.handle_batch(self, batch)

        queue.batch_handler(on_jobs)


class Watched:
    """Runs a handler and knows whenever it is the one on the processor, as the engine must."""

    def __init__(self, work: Any, crew: Crew, run: Run) -> None:
        self._work = work
        self._crew = crew
        self._run = run

    def __await__(self) -> Generator[Any, Any, object]:
        step, value = self._work.send, None
        while True:
            self._crew.on_processor = self._run
            try:
                awaited = step(value)
            except StopIteration as stop:
                return stop.value
            finally:
                self._crew.on_processor = None
            try:
                value = yield awaited
                step = self._work.send
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as error:
                step, value = self._work.throw, error
