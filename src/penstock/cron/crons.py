"""An app's cron tasks: declared in code, kept as rows, fired by whichever worker looks first."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from penstock.contracts.timers import CRON, TIMERS, Declared, TimerRow
from penstock.cron.task import CronTask, Due, Probe, Spending, TaskFunction, TaskRunner
from penstock.model.ceiling import Ceiling
from penstock.model.errors import BadApp, NoSuchSchedule
from penstock.model.firing import FiringRule
from penstock.model.limits import Limits, near
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.model.stack import function_place
from penstock.model.times import Span, in_seconds
from penstock.runtime.audit import audit

if TYPE_CHECKING:
    from penstock.queues.queue import Queue
    from penstock.runtime.engine import Engine

AnyTask = TypeVar("AnyTask", bound=TaskFunction)


MakeQueue = Callable[[QueueSettings, Any], "Queue[Any]"]


class ScheduleState(NamedTuple):
    """A schedule as it stands; times are microseconds."""

    name: str
    expression: str
    zone: str
    next_at: int
    fired: int
    paused: bool
    reason: str


class Crons:
    def __init__(
        self,
        limits: Limits,
        opened: Callable[[], Awaitable[Engine]],
        make_queue: MakeQueue,
        ceiling: Ceiling | None = None,
    ) -> None:
        """`ceiling` is that of the whole app; a task may have one of its own."""
        self._limits = limits
        self._opened = opened
        self._make_queue = make_queue
        self._spending = Spending(ceiling)
        self._bare: dict[object, str] = {}  # expressions above no task, so far
        self.tasks: dict[str, CronTask] = {}

    def add(
        self,
        rule: FiringRule,
        *,
        reason: str,
        name: str | None,
        when: Probe | None,
        ceiling: Ceiling | None,
        timeout: Span | None,
    ) -> Callable[[AnyTask], AnyTask]:
        def register(function: AnyTask) -> AnyTask:
            given: TaskFunction = function
            self._bare.pop(register, None)
            if not inspect.iscoroutinefunction(given):
                raise BadApp(f"The cron task {function_place(function)} is not async. Write `async def`.")
            task = CronTask(
                name or given.__name__,
                rule,
                reason,
                given,
                bool(inspect.signature(given).parameters),
                when,
                ceiling,
                self._limits.cron_invocation.timeout_seconds if timeout is None else in_seconds(timeout),
            )
            self._add(task)
            return function

        self._bare[register] = rule.expression
        return register

    def _add(self, task: CronTask) -> None:
        if task.name in self.tasks:
            raise BadApp(f"There are two cron tasks called {task.name!r}. Give one of them another `name=`.")
        if len(self.tasks) >= self._limits.crons_max:
            raise BadApp(
                f"There are {len(self.tasks)} cron tasks, as many as the profile allows (crons_max): {task.name!r} is "
                "one too many."
            )
        settings = QueueSettings(
            task.queue,
            parallel=None if task.rule.overlap == "allow" else 1,
            alone=task.rule.overlap != "allow",
            retry=Retry(0),
            timeout_seconds=task.timeout_seconds,
            cpu_timeout_seconds=self._limits.cron_invocation.cpu_timeout_seconds,
        )
        queue = self._make_queue(settings, Due)
        runner = TaskRunner(task, self._opened, self._spending)
        queue.handler(Due, name=task.name)(runner.run)
        queue.dead_letter_handler(runner.died)
        self.tasks[task.name] = task

    async def declare(self, engine: Engine) -> None:
        """Writes the schedules into their rows. One that is as it was keeps its next fire."""
        for expression in self._bare.values():
            raise BadApp(f"`app.cron({expression!r})` decorates no function. Put `@` before it, or remove it.")
        now = engine.clock.now()
        await engine.in_writer(engine.writer.timers.declare, [_declared(each, now) for each in self.tasks.values()])

    async def forget_others(self, engine: Engine) -> None:
        """A task that is not in the code any more fires no more."""
        await engine.in_writer(engine.writer.timers.keep_only, [*self.tasks])

    # -- what an operator does --------------------------------------------------------------------------

    async def list(self) -> Sequence[ScheduleState]:
        """Return every task with its schedule and when it runs next."""
        return [self._state(row) for row in await self._rows(await self._opened())]

    def _state(self, row: TimerRow) -> ScheduleState:
        rule = FiringRule.parse(row.rule or "{}")
        reason = self.tasks[row.name].reason if row.name in self.tasks else ""
        return ScheduleState(row.name, rule.expression, rule.zone, row.due, row.number, bool(row.paused), reason)

    async def trigger(self, name: str) -> None:
        """Runs a task once, now, beside its schedule."""
        engine = await self._opened()
        now = engine.clock.now()
        noted = audit(engine, "cron trigger", "cron", name, triggered=True)
        trigger = partial(engine.writer.timers.trigger, name, now=now)
        if not await engine.operate(trigger, noted, {f"cron.{name}"}):
            raise await self._unknown(engine, name)

    async def pause(self, name: str) -> None:
        """It runs no more until `resume`; what it misses is not made up for."""
        engine = await self._opened()
        noted = audit(engine, "cron pause", "cron", name)
        pause = partial(engine.writer.timers.pause, name, paused=True)
        if not await engine.in_writer(engine.writer.audited, noted, pause):
            raise await self._unknown(engine, name)

    async def resume(self, name: str) -> None:
        """Resume a task with its next fire. Fires that passed meanwhile are not repeated."""
        engine = await self._opened()
        now = engine.clock.now()
        row = next((each for each in await self._rows(engine) if each.name == name), None)
        if row is None:
            raise await self._unknown(engine, name)
        due = FiringRule.parse(row.rule or "{}").schedule().next_after(now)
        resume = partial(engine.writer.timers.pause, name, paused=False, since=now, due=due)
        await engine.operate(resume, audit(engine, "cron resume", "cron", name), {TIMERS})

    async def _rows(self, engine: Engine) -> Sequence[TimerRow]:
        return await engine.in_writer(engine.writer.timers.listed, CRON)

    async def _unknown(self, engine: Engine, name: str) -> NoSuchSchedule:
        known = [row.name for row in await self._rows(engine)]
        return NoSuchSchedule(f"There is no cron task {name!r}. {near(name, known)}")


def _declared(task: CronTask, now: int) -> Declared:
    schedule = task.rule.schedule()
    due = schedule.next_after(now)
    return Declared(task.name, task.rule.text(), now, due + schedule.jitter_micros(task.name, due), task.queue)
