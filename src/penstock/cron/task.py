"""A task that runs by the clock: its schedule, its look for work, its ceiling, and how one run of it ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import msgspec

from penstock.contracts.timers import TickNote
from penstock.model.ceiling import Ceiling
from penstock.model.envelope import Event
from penstock.model.errors import BadApp
from penstock.model.firing import FiringRule, idle_phase
from penstock.model.outcome import describe
from penstock.model.prices import Usage, metered
from penstock.model.schedule import refuse_frequent
from penstock.model.sql_files import load
from penstock.model.stack import located
from penstock.model.times import from_micros, month_of, to_micros
from penstock.model.usage import USAGE
from penstock.runtime.events import CeilingReached, TickFailed, TickWasIdle
from penstock.runtime.slots import contained
from penstock.runtime.unit import Unit, current_unit

if TYPE_CHECKING:
    from penstock.queues.letters import DeadLetter
    from penstock.runtime.engine import Engine

_log = logging.getLogger("penstock.cron")
Probe = Callable[[], Awaitable[bool]]
TaskFunction = Callable[..., Coroutine[Any, Any, object]]
Started = WeakSet[asyncio.Task[Any]]
_started: ContextVar[Started | None] = ContextVar("penstock_started", default=None)
SQL = load("penstock.cron", "cron.sql")
KINDS_MAX = 100


class Due(Event, type="cron.tick"):
    """A fire of a schedule, as a message."""

    name: str
    due: int
    expression: str
    missed: int = 0


class Tick:
    """What a cron task is given: which fire this is, and a way to let something finish before the run ends."""

    def __init__(self, due: Due, now: Callable[[], int]) -> None:
        self.task = due.name
        self.expression = due.expression
        self.scheduled_at: datetime = from_micros(due.due)
        self.missed = due.missed  # fires that passed without a run since the last one
        self.phase: str | None = None  # set it to say in the run log how far the run came
        self._now = now
        self._background: list[asyncio.Task[Any]] = []

    @property
    def late_seconds(self) -> float:
        """How long after its due time it is now."""
        return max(0.0, (from_micros(self._now()) - self.scheduled_at).total_seconds())

    def wait_until(self, work: Coroutine[Any, Any, Any]) -> None:
        """Runs beside the task; the run does not end, and nothing of it commits, before this has ended too."""
        self._background.append(asyncio.ensure_future(work))

    async def ended(self) -> None:
        """Waits for what runs beside; the first failure is the run's."""
        while self._background:
            await self._background.pop(0)

    async def cancel(self) -> None:
        """Ends what runs beside, and waits for it: on its way out it must not add to what is dropped."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class CronTask:
    name: str
    rule: FiringRule
    reason: str
    function: TaskFunction
    takes_tick: bool
    when: Probe | None = None
    ceiling: Ceiling | None = None
    timeout_seconds: float = 900.0

    def __post_init__(self) -> None:
        refused = refuse_frequent(self.rule.schedule()) if self.when is None else None
        if refused is not None:
            raise BadApp(f"Cron task {self.name!r}: {refused}", task=self.name)

    @property
    def queue(self) -> str:
        return f"cron.{self.name}"

    @property
    def metered_as(self) -> str:
        return f"{self.queue}:{self.name}"


class TaskRunner:
    """Runs ticks of one task as messages of its own queue, and writes the run log with what the run wrote."""

    def __init__(self, task: CronTask, engine: Callable[[], Awaitable[Engine]], spending: Spending) -> None:
        self._task = task
        self._engine = engine
        self._spending = spending

    async def run(self, due: Due) -> None:
        engine = await self._engine()
        unit = current_unit.get()
        assert unit is not None
        began, read = engine.clock.now(), engine.meter.read_by(unit.task)
        tick = Tick(due, engine.clock.now)
        try:
            status, error = await self._look_and_run(engine, tick, unit, read)
        except Exception as raised:
            # A task that fails has run: what it collected is dropped, the log says why, and the next fire comes as planned.
            unit.discard()
            failure = describe(raised)
            status, error = "failed", f"{failure.error_class}: {failure.message}"
            engine.events.emit(TickFailed(self._task.name, error, failure.traceback))
            error = located(error, failure.traceback)
        rows_read = engine.meter.read_by(unit.task) - read
        unit.effects.append(
            TickNote(due.name, due.due, status, began, engine.clock.now(), rows_read, error, tick.phase)
        )

    async def _look_and_run(self, engine: Engine, tick: Tick, unit: Unit, read: int) -> tuple[str, str | None]:
        if (reached := await self._spending.reached(engine, self._task)) is not None:
            await self._spending.tell_once(engine, CeilingReached(self._task.name, reached))
            return "ceiling", reached
        if self._task.when is not None and not await self._task.when():
            tick.phase = idle_phase(self._task.name)
            engine.events.emit(TickWasIdle(self._task.name, engine.meter.read_by(unit.task) - read))
            return "idle", None
        await self._run(tick)
        return "done", None

    async def _run(self, tick: Tick) -> None:
        with noted() as started:
            try:
                await contained(self._task.function(tick) if self._task.takes_tick else self._task.function())
                await tick.ended()
            except BaseException:
                await tick.cancel()
                raise
        for stray in left(started):
            _log.warning("Cron task %s ended while %r was running. Pass it to tick.wait_until.", self._task.name, stray)

    async def died(self, letter: DeadLetter) -> None:
        """A run that could not end by itself, past its wall limit, refused by the database or dead with its worker, has
        failed too, and the log says so."""
        engine = await self._engine()
        unit = current_unit.get()
        assert unit is not None
        due = msgspec.json.decode(letter.body, type=Due)
        error = f"{letter.error_class or letter.reason}: {letter.error_message or letter.reason}"
        began, ended = to_micros(letter.sent_at), to_micros(letter.failed_at)
        unit.effects.append(TickNote(due.name, due.due, "failed", began, ended, 0, error))
        engine.events.emit(TickFailed(self._task.name, error))


@contextmanager
def noted() -> Iterator[Started]:
    """Notes every task that is started inside, also by tasks that were."""
    loop = asyncio.get_running_loop()
    if loop.get_task_factory() is None:  # Python 3.11 does not tell in which context a task runs
        loop.set_task_factory(_made)
    started: Started = WeakSet()
    _started.set(started)
    try:
        yield started
    finally:
        _started.set(None)


def _made(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
    started = _started.get()
    if started is not None:
        started.add(task)
    return task


def left(started: Started) -> list[asyncio.Task[Any]]:
    """Those that still run, and whose code is the user's rather than the engine's."""
    return [task for task in started if not task.done() and _is_users(task)]


def _is_users(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "/penstock/" not in code.co_filename and "asyncio" not in code.co_filename


class Spending:
    def __init__(self, whole: Ceiling | None) -> None:
        self._whole = whole

    async def reached(self, engine: Engine, task: CronTask) -> str | None:
        """Why the task may not run, if it may not."""
        if task.ceiling is not None and (words := task.ceiling.reached(await self._used(engine, task.metered_as))):
            return words
        if self._whole is not None and (words := self._whole.reached(await self._used(engine, None))):
            return f"{words}, the whole app"
        return None

    async def _used(self, engine: Engine, task: str | None) -> Usage:
        """What is saved, and what is still in memory."""
        await engine.meter.flush()
        bound: dict[str, Any] = {"month": month_of(engine.clock.now())}
        sql, bound = (USAGE["used"], bound) if task is None else (USAGE["used_by_task"], bound | {"task": task})
        return metered((await engine.read("", sql, bound, rows_max=KINDS_MAX)).values)

    async def tell_once(self, engine: Engine, event: CeilingReached) -> None:
        """Once a task and month, in whatever process: the run log knows whether it was skipped before."""
        now = engine.clock.now()
        found = await engine.read("", SQL["last_skipped"], {"task": event.task}, rows_max=1)
        if not any(month_of(at) == month_of(now) for (at,) in found.values):
            engine.events.emit(event)
