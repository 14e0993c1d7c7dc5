"""Handlers as the law sees them: when each begins, beside whom, when it ends, and as what."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import penstock as ps
from penstock.model.message import Delivery
from penstock.queues.batch import Batch
from penstock.runtime.unit import current_unit
from tests.simulation.batches import BatchScript, ended
from tests.simulation.model import Crew, Run, Work
from tests.simulation.script import Script
from tests.simulation.workers import Job, SimulatedApp, Watched

if TYPE_CHECKING:
    from tests.simulation.world import World


class Handlers:
    def __init__(self, world: World, script: Script) -> None:
        self._world = world
        self._script = script
        self._batches = BatchScript(world.plan, script)

    async def handle(self, app: SimulatedApp, job: Job, message: ps.Message[Job]) -> object:
        unit = current_unit.get()
        assert unit is not None
        assert unit.delivery is not None
        crew = self._world.crew_of(app)
        (run,) = self._begun(crew, [unit.delivery])
        try:
            answer = await Watched(self._script.play(app, job, run, message), crew, run)
            run.outcome = run.outcome or "done"
        except BaseException as error:
            self._raised(app, run, error)
            raise
        finally:
            self._ended(crew, [run])
        return answer

    async def handle_batch(self, app: SimulatedApp, batch: Batch[Job]) -> object:
        crew = self._world.crew_of(app)
        runs = self._begun(crew, [message.delivery for message in batch])
        first = runs[0]
        leader = Run(first.row, first.token, crew, first.began, first.suspect, first.work, runs)
        try:
            return await Watched(self._batches.play(app, batch, leader), crew, leader)
        except BaseException as error:
            if not leader.answered:
                self._raised(app, leader, error)
                ended(leader.work, leader.outcome, None)
            raise
        finally:
            self._ended(crew, runs)

    def _raised(self, app: SimulatedApp, run: Run, error: BaseException) -> None:
        """Sets the outcome of a run that did not end as its script planned."""
        world, crew = self._world, run.crew
        if isinstance(error, asyncio.CancelledError):
            overran = run.outcome != "cancelled" and world.now() - run.began >= run.row.queue.wall - 0.002
            # Cancelled by what it waits for is a failure, unless the worker cancels everybody at the same time.
            stopping = app._life.worker is not None and app._life.worker.stopping
            failed = run.outcome == "cancelled" and not stopping
            run.outcome = "wall" if overran else "fail" if failed else "handed_back"
        elif isinstance(error, ps.LeaseLost):
            run.outcome = "fail"
        elif isinstance(error, Exception) and not run.outcome and not crew.process.dead:
            run.outcome = "fail"
            world.break_(f"{run.row.key} failed as nobody planned: {type(error).__name__}: {error}")

    def _ended(self, crew: Crew, runs: list[Run]) -> None:
        if crew.process.dead:
            return
        self._world.law.look_for_room()
        self._world.law.look_for_slots(crew)
        for run in runs:
            run.ended, run.answered = self._world.now(), True
            crew.running.remove(run)
            self._world.note(f"{crew.name} ends {run.row.key} as {run.outcome}")

    def _begun(self, crew: Crew, deliveries: list[Delivery]) -> list[Run]:
        law, now = self._world.law, self._world.now()
        common, runs = Work(), list[Run]()
        running = [run.row.key for run in crew.running]
        suspect = any(delivery.crashes for delivery in deliveries)
        alone = not running or not (suspect or any(other.suspect for other in crew.running))
        alone = alone and (not suspect or len(deliveries) == 1)
        for delivery in deliveries:
            row = law.rows[(delivery.id, delivery.handler)]
            run = Run(row, delivery.token, crew, now, delivery.crashes > 0, common, runs)
            if (delivery.seq, delivery.token) in law.runs:
                self._world.break_(f"{row.key} began twice under one token")
            if not alone:
                self._world.break_(f"{row.key} began beside {running}, and one is a suspect")
            law.runs[(delivery.seq, delivery.token)] = run
            law.starts(crew, row)
            runs.append(run)
            self._world.note(f"{crew.name} begins {row.key}")
        common.runs += runs
        crew.running += runs
        law.counts.begun(crew, runs[0].row.queue.name)
        law.look_for_slots(crew)
        law.look_for_room()
        return runs
