"""What handlers of a simulated world do: sleep, write, send on, fail in every way, and tell the law what to expect."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import NoReturn

import penstock as ps
from penstock.model.errors import StatementFailed
from penstock.model.ids import from_text
from penstock.runtime.unit import current_unit
from tests.simulation.endings import KEEPS_EFFECTS, worded
from tests.simulation.model import Run, Work
from tests.simulation.plan import Plan
from tests.simulation.workers import HANDLERS, Job, SimulatedApp

EFFECT = "insert into effects (id, handler, token, kind) values (:id, :handler, :token, :kind)"
STEPS = ("midway", "keyed", "once", "background")
ANSWERS = {"fail", "later", "throttled", "bad", "lost_update", "discard", "permanent"}
WORDS = ("ack", "retried", "later", "discard")
DEPTH_MAX = 2
LATE_SECONDS = (0.0, 0.001, 0.5, 5.0)


class Script:
    def __init__(
        self,
        plan: Plan,
        chance: Random,
        *,
        die: Callable[[Run], NoReturn],
        stall: Callable[[Run], None],
        broken: Callable[[str], None],
    ) -> None:
        self._plan = plan
        self.chance = chance
        self.die = die
        self.stall = stall
        self.broken = broken
        self._kinds = [kind for kind in plan.behaviours if kind not in STEPS]
        self._weights = [plan.behaviours[kind] for kind in self._kinds]
        self.calm = False  # nothing goes wrong any more
        self.left_over: list[asyncio.Task[None]] = []
        self.once_calls: dict[tuple[bytes, str], int] = {}

    async def play(self, app: SimulatedApp, job: Job, run: Run, message: ps.Message[Job]) -> object:
        """Runs to its end as the handler would; what it raises or returns is the handler's answer."""
        kind = self.drawn()
        unit = current_unit.get()
        assert unit is not None
        await self.sleep()
        for step in self.steps(job):
            await self._take(step, app, run)
        if kind == "said":
            return self._say(app, job, run, message)
        await self.befall(kind, run)
        if kind == "stubborn":
            return await self._stubborn(app, job, run)
        self.work(app, job, run, run.work)
        answer = kind if kind in ANSWERS else "done"
        run.outcome, run.seconds = answer, self.chance.choice((0.0, 0.5, 2.0))
        run.work.keeps = answer in KEEPS_EFFECTS
        if kind == "twice" and (sent := unit.sends()):
            unit.add(sent[-1])
        return self.answer(kind, app, run.seconds)

    async def befall(self, kind: str, run: Run) -> None:
        """What happens to a handler before it can answer."""
        match kind:
            case "cancelled":
                run.outcome = "cancelled"
                gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                gone.cancel()
                await gone
            case "overrun":
                await asyncio.sleep(run.row.queue.wall + 1)
            case "poison":
                self.die(run)

    def steps(self, job: Job) -> list[str]:
        """What a job does on its way, the same at every try."""
        shape = Random(f"{self._plan.seed}/{job.key}/steps")
        return [step for step in STEPS if step in self._plan.behaviours and shape.random() < 0.4]

    async def _take(self, step: str, app: SimulatedApp, run: Run) -> None:
        match step:
            case "midway":
                async with app.unit():
                    self._write(app, run, "midway")
                await self.sleep()
            case "keyed":
                await self.keyed(app, run)
            case "once":
                await self._once(app, run)
            case "background":
                self.left_over.append(asyncio.create_task(self._write_late(app, run)))

    async def keyed(self, app: SimulatedApp, run: Run) -> None:
        async with app.unit(key="k"):
            self._write(app, run, "keyed")
        await self.sleep()

    def drawn(self) -> str:
        if self.calm or not self._kinds or self.chance.random() < 0.5:
            return "done"
        return self.chance.choices(self._kinds, self._weights)[0]

    async def sleep(self) -> None:
        seconds = self.chance.choice((0.0, 0.0, self.chance.uniform(0.001, 0.2), self.chance.uniform(0.1, 0.9)))
        if seconds:
            await asyncio.sleep(seconds * self._plan.slowness)

    def work(self, app: SimulatedApp, job: Job, run: Run, work: Work) -> None:
        """The effects and children of a job are the same at every try; only its answer decides whether they are saved."""
        shape = Random(f"{self._plan.seed}/{job.key}")
        self._effect(app, run, work, "done")
        if shape.random() < 0.3:
            self._effect(app, run, work, "more")
        if job.depth < DEPTH_MAX and run.row.handler != HANDLERS[1]:
            for number in range(shape.choice((0, 0, 1, 2))):
                queue = shape.randrange(len(app.by_number))
                delay = 0.0 if self._plan.peaceful else shape.choice((0.0, 0.0, 1.5))
                bounded = self._plan.queues[queue].messages_max is not None
                if bounded and self.calm:
                    continue  # queues that fill each other would never empty
                id = app.by_number[queue].send(Job(key=f"{job.key}.{number}", depth=job.depth + 1), delay=delay)
                work.children.append(from_text(id))
                work.bounded = work.bounded or bounded

    def _effect(self, app: SimulatedApp, run: Run, work: Work, kind: str) -> None:
        self._write(app, run, kind)
        work.effects[(run.row.id, run.row.handler, run.token, kind)] += 1

    def _write(self, app: SimulatedApp, run: Run, kind: str) -> None:
        app.db.write(EFFECT, id=run.row.id, handler=run.row.handler, token=run.token, kind=kind)

    def midway(self, app: SimulatedApp, runs: list[Run]) -> None:
        for run in runs:
            self._write(app, run, "midway")

    def answer(self, kind: str, app: SimulatedApp, seconds: float | None) -> object:
        match kind:
            case "fail":
                raise OSError("as planned")
            case "later":
                return ps.Later(seconds or 0.0)
            case "throttled":
                raise ps.Throttled(retry_after=seconds)
            case "discard":
                return ps.Discard("as planned")
            case "permanent":
                raise ps.Permanent("as planned")
            case "bad":
                app.db.write("insert into no_such_table (id) values (1)")
            case "lost_update":
                app.db.write("update effects set kind = 'lost' where id = x'00'", expect=1)
        return None

    # -- words about a message ----------------------------------------------------------------------------

    def _say(self, app: SimulatedApp, job: Job, run: Run, message: ps.Message[Job]) -> object:
        """Says something about its message and then ends in some other way: the word stands."""
        word, ending = self.chance.choice(WORDS), self.chance.choice(("done", "done", "fail", "throttled"))
        run.seconds = self.chance.choice((None, 0.0, 2.0)) if word == "retried" else self.chance.choice((0.0, 2.0))
        say(message, word, run.seconds)
        if self.chance.random() < 0.7:
            self.work(app, job, run, run.work)
        run.outcome = worded(word, ending, held_nothing=not run.work.effects)
        run.work.keeps = ending == "done" and run.outcome in KEEPS_EFFECTS
        return self.answer(ending, app, run.seconds)

    # -- odd ones -----------------------------------------------------------------------------------------

    async def _stubborn(self, app: SimulatedApp, job: Job, run: Run) -> object:
        try:
            await asyncio.sleep(run.row.queue.wall + 1)
        except asyncio.CancelledError:
            self.work(app, job, run, run.work)
            run.outcome, run.work.keeps = "stubborn", True
        return None

    async def _once(self, app: SimulatedApp, run: Run) -> None:
        name = run.row.origin, run.row.handler

        async def call() -> int:
            self.once_calls[name] = calls = self.once_calls.get(name, 0) + 1
            await self.sleep()
            self._write(app, run, "once")
            return calls

        result = await app.once("o", call)
        if not 1 <= result <= self.once_calls[name]:
            self.broken(f"{run.row.key} was told {result} by what it did once")

    async def _write_late(self, app: SimulatedApp, run: Run) -> None:
        await asyncio.sleep(self.chance.choice(LATE_SECONDS))
        if run.ended is None and run.outcome == "":
            return  # its handler still runs: then this is no late write
        try:
            self._write(app, run, "late")
        except ps.UnitClosed:
            return
        self.broken(f"{run.row.key} wrote after its unit was closed")


def say(message: ps.Message[Job], word: str, seconds: float | None) -> None:
    match word:
        case "ack":
            message.ack()
        case "retried":
            message.retry(seconds)
        case "later":
            message.later(seconds or 0.0)
        case "discard":
            message.discard("as planned")


def refused(error: BaseException) -> bool:
    """Whether a producer's unit failed for the reason that was planned."""
    return isinstance(error, StatementFailed | ps.QueueFull)
