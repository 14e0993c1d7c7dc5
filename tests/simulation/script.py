"""What handlers of a simulated world do: sleep, write, send on, fail in every way, and tell the law what to expect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import NoReturn

import penstock as ps
from penstock.model.errors import StatementFailed
from penstock.model.ids import from_text
from penstock.runtime.unit import Unit, current_unit
from tests.simulation.crews import Job, SimulatedApp
from tests.simulation.model import Run
from tests.simulation.plan import Plan

EFFECT = "insert into effects (id, token, kind) values (:id, :token, :kind)"
STEPS = ("midway", "keyed", "once", "background")
DEPTH_MAX = 2
LATE_SECONDS = (0.0, 0.001, 0.5, 5.0)


class Script:
    def __init__(
        self, plan: Plan, chance: Random, *, die: Callable[[Run], NoReturn], broken: Callable[[str], None]
    ) -> None:
        self._plan = plan
        self._chance = chance
        self._die = die
        self._broken = broken
        self._kinds = [kind for kind in plan.behaviours if kind not in STEPS]
        self._weights = [plan.behaviours[kind] for kind in self._kinds]
        self.calm = False  # nothing goes wrong any more
        self.left_over: list[asyncio.Task[None]] = []
        self.once_calls: dict[bytes, int] = {}

    async def play(self, app: SimulatedApp, job: Job, run: Run) -> object:
        """Runs to its end as the handler would; what it raises or returns is the handler's answer."""
        kind = self._drawn()
        unit = current_unit.get()
        assert unit is not None
        await self._sleep()
        for step in self._steps(job):
            await self._take(step, app, run)
        match kind:
            case "cancelled":
                run.outcome = "cancelled"
                gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                gone.cancel()
                await gone
            case "overrun":
                await asyncio.sleep(run.row.queue.wall + 1)
            case "stubborn":
                return await self._stubborn(app, job, run)
            case "poison":
                self._die(run)
        self._work(app, job, run)
        return self._answer(kind, app, run, unit)

    def _steps(self, job: Job) -> list[str]:
        """What a job does on its way, the same at every try."""
        shape = Random(f"{self._plan.seed}/{job.key}/steps")
        return [step for step in STEPS if step in self._plan.behaviours and shape.random() < 0.4]

    async def _take(self, step: str, app: SimulatedApp, run: Run) -> None:
        match step:
            case "midway":
                async with app.unit():
                    self._write(app, run, "midway")
                await self._sleep()
            case "keyed":
                async with app.unit(key="k"):
                    self._write(app, run, "keyed")
                await self._sleep()
            case "once":
                await self._once(app, run)
            case "background":
                self.left_over.append(asyncio.create_task(self._write_late(app, run)))

    def _drawn(self) -> str:
        if self.calm or not self._kinds or self._chance.random() < 0.5:
            return "done"
        return self._chance.choices(self._kinds, self._weights)[0]

    async def _sleep(self) -> None:
        seconds = self._chance.choice((0.0, 0.0, self._chance.uniform(0.001, 0.2), self._chance.uniform(0.1, 0.9)))
        if seconds:
            await asyncio.sleep(seconds)

    def _work(self, app: SimulatedApp, job: Job, run: Run) -> None:
        """The effects and children of a job are the same at every try; only its answer decides whether they are saved."""
        shape = Random(f"{self._plan.seed}/{job.key}")
        self._write(app, run, "done")
        run.effects["done"] += 1
        if shape.random() < 0.3:
            self._write(app, run, "more")
            run.effects["more"] += 1
        if job.depth < DEPTH_MAX:
            for number in range(shape.choice((0, 0, 1, 2))):
                queue = app.by_number[shape.randrange(len(app.by_number))]
                delay = 0.0 if self._plan.peaceful else shape.choice((0.0, 0.0, 1.5))
                id = queue.send(Job(key=f"{job.key}.{number}", depth=job.depth + 1), delay=delay)
                run.children.append(from_text(id))

    def _write(self, app: SimulatedApp, run: Run, kind: str) -> None:
        app.db.write(EFFECT, id=run.row.id, token=run.token, kind=kind)

    def _answer(self, kind: str, app: SimulatedApp, run: Run, unit: Unit) -> object:
        run.outcome = (
            kind if kind in ("fail", "later", "throttled", "bad", "lost_update", "discard", "permanent") else "done"
        )
        run.seconds = self._chance.choice((0.0, 0.5, 2.0))
        match kind:
            case "fail":
                raise OSError("as planned")
            case "later":
                return ps.Later(run.seconds)
            case "throttled":
                raise ps.Throttled(retry_after=run.seconds)
            case "discard":
                return ps.Discard("as planned")
            case "permanent":
                raise ps.Permanent("as planned")
            case "bad":
                app.db.write("insert into no_such_table (id) values (1)")
            case "lost_update":
                app.db.write("update effects set kind = 'lost' where id = x'00'", expect=1)
            case "twice" if unit.sends:
                unit.send(unit.sends[-1])
        return None

    async def _stubborn(self, app: SimulatedApp, job: Job, run: Run) -> object:
        try:
            await asyncio.sleep(run.row.queue.wall + 1)
        except asyncio.CancelledError:
            self._work(app, job, run)
            run.outcome = "stubborn"
            return None
        return None

    async def _once(self, app: SimulatedApp, run: Run) -> None:
        async def call() -> int:
            self.once_calls[run.row.id] = calls = self.once_calls.get(run.row.id, 0) + 1
            await self._sleep()
            self._write(app, run, "once")
            return calls

        result = await app.once("o", call)
        if not 1 <= result <= self.once_calls[run.row.id]:
            self._broken(f"{run.row.key} was told {result} by what it did once")

    async def _write_late(self, app: SimulatedApp, run: Run) -> None:
        await asyncio.sleep(self._chance.choice(LATE_SECONDS))
        if run.ended is None and run.outcome == "":
            return  # its handler still runs: then this is no late write
        try:
            self._write(app, run, "late")
        except ps.UnitClosed:
            return
        self._broken(f"{run.row.key} wrote after its unit was closed")


def refused(error: BaseException) -> bool:
    """Whether a producer's unit failed for the reason that was planned."""
    return isinstance(error, StatementFailed)
