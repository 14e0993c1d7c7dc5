"""One execution of a run: from when its message was claimed until it ends, waits, or is stopped. Steps run here, each in a
unit of its own that is saved with its record, under the fence of the message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from penstock.contracts.effects import Settle
from penstock.contracts.runs import Progress, RunChange
from penstock.model.errors import LeaseLost, StoreError
from penstock.model.message import Delivery
from penstock.model.retry import Retry, retry_of
from penstock.model.run import DONE, FAILED, RETRYING, STEP, StepRecord, key_of
from penstock.model.stack import failure_line
from penstock.runtime.events import EngineEvent
from penstock.runtime.slots import contained
from penstock.runtime.unit import AwaitedUnit, Unit, current_unit
from penstock.workflows.inputs import PLAIN, restored, stored
from penstock.workflows.run import Run
from penstock.workflows.steps import Step, current_step, failed, judged

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.workflows.workflow import Workflow

TURNS = 10  # of the loop, in which branches beside a wait may begin a step
LOOK_SECONDS = 1.0  # how often a wait beside a long step looks for its signal


class SignalRefused(EngineEvent, name="signal.refused", level="warning"):
    """A signal that came before its run waited for it does not fit the type. The run waits on: send it again, corrected."""

    workflow: str
    run: str
    signal: str
    error: str


class StepFailedOnce(EngineEvent, name="step.failed", level="warning"):
    """A step of a run raised. It is retried after `wait_seconds`; None: it has failed for good."""

    workflow: str
    run: str
    step: str
    attempt: int
    error: str
    traceback: str | None
    wait_seconds: float | None

    def line(self) -> str:
        where = f"{self.workflow} {self.run}, step {self.step}"
        return failure_line(where, self.error, self.traceback, self.attempt, self.wait_seconds)


class StepUnit(AwaitedUnit):
    """A cancelled waiter may ignore the result; the next execution reads it from the database."""

    __slots__ = ()

    def __init__(self, execution: Execution, task: str, key: str | None) -> None:
        Unit.__init__(self, execution.engine, execution.delivery, task, key)
        self.fences.append(Settle(execution.delivery))
        self.outcome = execution.loop.create_future()


class Execution:
    def __init__(
        self, engine: Engine, delivery: Delivery, workflow: str, *, retry: Retry, generation: int, ends_at: float
    ) -> None:
        """`ends_at` is the loop's time after which no step is begun, so that each has as long as it may take."""
        self.engine = engine
        self.delivery = delivery
        self._task = f"workflow.{workflow}:"
        self._workflow = workflow
        self._retry = retry
        self._again = f"#{generation}" if generation else ""  # what is done anew has keys of its own
        self._ends_at = ends_at
        self._suspect = bool(delivery.crashes or delivery.attempts)
        self.loop = asyncio.get_running_loop()
        self._working = 0  # steps and saves under way
        self._changed = asyncio.Event()  # one of them has ended
        self._waits: list[tuple[int | None, str | None]] = []
        self._at = engine.faults.at
        self._gate = engine.gate
        self.now = engine.clock.now
        self.notes: list[RunChange] = []  # saved with the next commit, whichever that is
        self.pausing = False
        self.wake_at: int | None = None  # of an execution that was suspended, unless only a signal wakes it
        self.signals: tuple[str, ...] = ()
        self.failure: Exception | None = None  # the store's, or that the run is not ours any more
        self.branches: set[asyncio.Task[Any]] = set()
        self.done = self.failed = 0  # steps

    def refused(self, run: Run, signal: str, error: str) -> None:
        self.engine.events.emit(SignalRefused(self._workflow, run.id, signal, error))

    def note(self, change: RunChange) -> None:
        self.notes.append(change)

    def begin_child(
        self,
        id: str,
        parent: tuple[bytes, str],
        workflow: Workflow[..., Any],
        arguments: tuple[Any, ...],
        named: dict[str, Any],
    ) -> None:
        unit = StepUnit(self, self._task, None)
        child_id = f"{id}/{parent[1]}{self._again}"
        key = key_of(workflow.name, child_id)
        self.note(workflow.new_run(unit, child_id, key, arguments, named, workflow.priority, parent))

    # -- steps --------------------------------------------------------------------------------------------

    async def attempt(
        self,
        run: Run,
        name: str,
        position: int,
        record: StepRecord | None,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        retries: int | Retry | None,
        timeout: float | None,
    ) -> Any:
        while True:
            if record is None:
                attempt, started = 1, self.now()
            else:
                attempt, started = record.attempts + 1, record.started_at
                while record.due is not None and self.now() < record.due:
                    await self.blocked(run, record.due, None)
            if self.pausing or self.loop.time() >= self._ends_at or self._gate.draining:
                await self._yield(run)
            try:
                return await self._do(run, name, position, attempt, started, function, arguments, timeout)
            except Exception as error:
                tried = StepRecord(run.key, position, name, STEP, RETRYING, attempt - 1, started)
                record = await self._failed(run, tried, error, retry_of(self._retry, retries))

    async def _do(
        self,
        run: Run,
        name: str,
        position: int,
        attempt: int,
        started: int,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        timeout: float | None,
    ) -> Any:
        unit = StepUnit(self, self._task + name, f"step {name}{self._again}")
        outside = current_unit.set(unit)
        token = current_step.set(Step(self._workflow, run.id, name, self._again, attempt))
        self._begin()
        try:
            self._at("step.before")
            try:
                work = function(*arguments)
                if (tracer := self.engine.events.tracer) is not None:
                    work = tracer("step", name, {"workflow": self._workflow, "run": run.id, "attempt": attempt}, work)
                if timeout is None:
                    result = await contained(work)
                else:
                    async with asyncio.timeout(timeout):
                        result = await contained(work)
            finally:
                current_step.reset(token)
                current_unit.reset(outside)
                unit.closed = True
            body = stored(result, name)
            self._at("step.after")
            # Made through the tuple itself: one is made for every step.
            values = (run.key, position, name, STEP, DONE, attempt, started, self.now(), None, body, None, None)
            await self._commit(run, unit, tuple.__new__(StepRecord, values))
            self._at("step.saved")
            self.done += 1
        finally:
            self._end()
        return result if type(result) in PLAIN else restored(body, function)

    async def _failed(self, run: Run, tried: StepRecord, error: Exception, retry: Retry) -> StepRecord:
        """Record the retry and its time. A final failure is raised in the workflow once it is saved."""
        share = self.engine.surroundings.random.random()
        verdict = judged(error, attempt=tried.attempts + 1, retry=retry, share=share)
        attempts = tried.attempts + verdict.charged
        if verdict.wait_seconds is None:
            ended = tried._replace(
                state=FAILED, attempts=attempts, ended_at=self.now(), error=verdict.error, traceback=verdict.traceback
            )
            self._tell_failure(run, ended, None)
            self.note(ended._replace(result=verdict.facts))
            await self.save(run)
            self.failed += 1
            raise failed(tried.name, verdict.error, verdict.facts) from error
        due = self.now() + int(verdict.wait_seconds * 1_000_000)
        again = tried._replace(attempts=attempts, due=due, error=verdict.error, traceback=verdict.traceback)
        self._tell_failure(run, again, verdict.wait_seconds)
        self.note(again)
        return again

    def _tell_failure(self, run: Run, step: StepRecord, wait_seconds: float | None) -> None:
        error = step.error or ""
        event = StepFailedOnce(self._workflow, run.id, step.name, step.attempts, error, step.traceback, wait_seconds)
        self.engine.events.emit(event)

    async def save(self, run: Run) -> None:
        """Makes what was noted so far durable."""
        self._begin()
        try:
            await self._commit(run, StepUnit(self, self._task, None), None)
        finally:
            self._end()

    async def _commit(self, run: Run, unit: StepUnit, record: StepRecord | None) -> None:
        """An error of the step's own goes to the step; one of the store's ends the execution."""
        notes, self.notes = self.notes, []
        if record is None:
            unit.effects += notes
        else:
            if notes:  # in a unit of their own: they stand, whatever the database says to what the step wrote
                noting = Unit(self.engine, self.delivery, self._task, None)
                noting.fences.append(Settle(self.delivery))
                noting.effects += notes
                self.engine.scheduler.put(noting)
            unit.effects.append(record)
            if self._suspect:
                unit.effects.append(Progress(self.delivery.seq))
        self.engine.scheduler.put(unit)
        try:
            await unit.outcome
        except (LeaseLost, StoreError) as error:
            self.failure = error
            self._suspend(run)
        if unit.answer.stops:
            self.pausing = True
        if record is not None and self._suspect:
            self._ends_at = 0.0  # nothing runs beside a suspect: now that it is none, it makes room

    def _begin(self) -> None:
        self._working += 1
        task = asyncio.current_task(self.loop)
        if task is not None:
            self.branches.add(task)

    def _end(self) -> None:
        self._working -= 1
        self._changed.set()

    # -- waiting ------------------------------------------------------------------------------------------

    async def blocked(self, run: Run, due: int | None, signal: str | None) -> None:
        """Returns when it is worth looking again. If nothing else of this run is at work, the run is suspended instead."""
        waits = (due, signal)
        self._waits.append(waits)
        try:
            turns, asked = 0, run.asked
            while turns < TURNS:
                await asyncio.sleep(0)
                run.check_runs()
                if self._working:
                    break
                # A branch on its way through what is recorded asks again and again, and may come to a step.
                turns, asked = (turns + 1 if run.asked == asked else 0), run.asked
            else:
                self._suspend(run)
            self._changed.clear()
            until = LOOK_SECONDS if due is None else max(0.0, (due - self.now()) / 1_000_000)
            if signal is not None:
                until = min(until, LOOK_SECONDS)
            try:
                async with asyncio.timeout(until):  # `wait_for` may lose a cancellation on Python 3.11
                    await self._changed.wait()
            except TimeoutError:
                if signal is not None:
                    (history,) = await self.engine.in_writer(self.engine.writer.runs.histories, [run.key])
                    if history is not None:
                        run.heard(history.signals)
        finally:
            self._waits.remove(waits)

    async def _yield(self, run: Run) -> None:
        """The execution is old, or the run is to pause or to be alone: no step begins. Those under way end first."""
        while self._working:
            self._changed.clear()
            await self._changed.wait()
            run.check_runs()
        self._waits.append((self.now(), None))
        self._suspend(run)

    def _suspend(self, run: Run) -> None:
        dues = [due for due, _ in self._waits if due is not None]
        self.wake_at = min(dues, default=None)
        self.signals = tuple({signal for _, signal in self._waits if signal is not None})
        run.suspend()

    async def close(self) -> None:
        """Ends what the workflow has left behind it."""
        self.branches.discard(asyncio.current_task())
        left = [task for task in self.branches if not task.done()]
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
