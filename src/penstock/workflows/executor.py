"""Runs a workflow each time the message of one of its runs is delivered: from its records to its next wait, or its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.contracts.effects import Resolve
from penstock.contracts.runs import EndRun, ParkRun, RunChange, RunHistory, Suspend
from penstock.model.envelope import Event
from penstock.model.errors import BetweenSteps
from penstock.model.outcome import Later, describe
from penstock.model.retry import Retry
from penstock.model.run import ACTIVE, COMPLETE, ERRORED, NEVER_SECONDS, PAUSED, Script, key_of, queue_of
from penstock.model.stack import located
from penstock.runtime.events import EngineEvent, StepsEnded
from penstock.runtime.unit import Unit, current_unit
from penstock.workflows.execution import Execution
from penstock.workflows.inputs import Inputs, WorkflowFunction, stored
from penstock.workflows.run import Run

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

NONDETERMINISM = "nondeterminism"
EXECUTION_SHARE = 0.5  # of the wall limit, after which no step begins in this execution: each has the other half


class Begun(Event, type="workflow.run"):
    """The message of a run. It is delivered whenever the run is to go on."""

    run: str
    input: msgspec.Raw
    generation: int = 0
    child: bool = False


class RunFailed(EngineEvent, name="workflow.failed", level="error"):
    """A run of a workflow has ended with an error."""

    workflow: str
    run: str
    error: str
    traceback: str | None = None

    def line(self) -> str:
        return f"{self.workflow} {self.run}: {located(self.error, self.traceback)}"


class RunParked(EngineEvent, name="workflow.parked", level="error"):
    """The code of a workflow differs from what a run has recorded. The run waits for an operator."""

    workflow: str
    run: str
    error: str


class Between(Unit):
    """Stands where a unit would be between two steps: nothing joins it."""

    __slots__ = ()
    refusal = BetweenSteps


class Histories:
    """Reads the records of runs that go on, many at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._wanted: list[tuple[bytes, asyncio.Future[RunHistory | None]]] = []

    async def read(self, key: bytes) -> RunHistory | None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[RunHistory | None] = loop.create_future()
        if not self._wanted:
            loop.call_soon(self._ask)
        self._wanted.append((key, answer))
        return await answer

    def _ask(self) -> None:
        wanted, self._wanted = self._wanted, []
        runs = self._engine.writer.runs

        def answered(found: list[RunHistory | None] | None, error: BaseException | None) -> None:
            for place, (_, answer) in enumerate(wanted):
                if answer.done():
                    continue
                if error is not None:
                    answer.set_exception(error)
                else:
                    assert found is not None
                    answer.set_result(found[place])

        self._engine.submit(lambda: runs.histories([key for key, _ in wanted]), answered)


class Executor:
    def __init__(
        self,
        name: str,
        function: WorkflowFunction,
        inputs: Inputs,
        *,
        retry: Retry,
        timeout_seconds: float,
        kept_seconds: float,
    ) -> None:
        self._name = name
        self._function = function
        self._inputs = inputs
        self._retry = retry
        self._wall_seconds = timeout_seconds
        self._kept_seconds = kept_seconds
        self._engine: Engine | None = None
        self._histories: Histories
        self._between: Between

    async def run(self, begun: Begun) -> Later | None:
        unit = current_unit.get()
        assert unit is not None
        assert unit.delivery is not None
        engine = unit.engine
        if engine is not self._engine:
            self._engine, self._histories = engine, Histories(engine)
            self._between = Between(engine, None, queue_of(self._name), None)
            self._between.closed = True
        delivery = unit.delivery
        key = delivery.origin
        history = RunHistory(ACTIVE, [], [])
        if delivery.before or begun.generation or delivery.replay_of:
            found = await self._histories.read(key)
            if found is None or found.state not in (ACTIVE, PAUSED):
                return None  # it was ended, or forgotten, meanwhile
            if found.state == PAUSED:
                return self._wait(unit, Suspend(key, delivery.queue, (), pausing=True), None)
            history = found
        loop = asyncio.get_running_loop()
        execution = Execution(
            engine,
            delivery,
            self._name,
            retry=self._retry,
            generation=begun.generation,
            ends_at=loop.time() + self._wall_seconds * EXECUTION_SHARE,
        )
        run = Run(self._name, begun.run, key, delivery.sent_at, Script(history.steps), history.signals, execution)
        try:
            given = self._inputs.decoded(bytes(begun.input))
        except msgspec.MsgspecError as error:
            return self._parked(unit, run, key, "input", f"The run's input no longer matches the workflow: {error}")
        ending = await self._called(run, execution, begun, given)
        if execution.done or execution.failed:
            engine.events.emit(StepsEnded(self._name, execution.done, execution.failed))
        if ending is None:
            return self._stopped(unit, run, execution, key)
        unit.effects += [*execution.notes, ending]
        return None

    async def _called(self, run: Run, execution: Execution, begun: Begun, given: dict[str, Any]) -> EndRun | None:
        """Calls the workflow. None: it has not ended."""
        outside = current_unit.set(self._between)
        try:
            result = await self._function(run, **given)
            run.ended()
            if run.difference is None and isinstance(run.stopped, Exception):
                body = stored(result, self._name, "Workflow")
                return EndRun(run.key, COMPLETE, body, None, self._kept_seconds, begun.child)
        except Exception as error:
            run.ended()
            if run.difference is None and isinstance(run.stopped, Exception):
                failure = describe(error)
                text = f"{failure.error_class}: {failure.message}"
                execution.engine.events.emit(RunFailed(self._name, run.id, text, failure.traceback))
                ended = EndRun(run.key, ERRORED, None, text, self._kept_seconds, begun.child)
                return ended._replace(traceback=failure.traceback)
        except BaseException:
            if run.stopped is None:
                raise  # the worker stops, or the wall limit is reached
        finally:
            current_unit.reset(outside)
            if execution.branches:
                await execution.close()
        return None

    def _stopped(self, unit: Unit, run: Run, execution: Execution, key: bytes) -> Later:
        assert unit.delivery is not None
        if execution.failure is not None:
            return Later(0.0)  # the row is not ours any more, or the store cannot be written: nothing of this is saved
        if run.difference is not None:
            return self._parked(unit, run, key, NONDETERMINISM, str(run.difference))
        suspend = Suspend(key, unit.delivery.queue, execution.signals, execution.pausing)
        return self._wait(unit, suspend, None if execution.pausing else execution.wake_at, execution)

    def _parked(self, unit: Unit, run: Run, key: bytes, reason: str, text: str) -> Later:
        """Nothing of this execution is kept but why it ended."""
        unit.engine.events.emit(RunParked(self._name, run.id, text))
        unit.effects += [ParkRun(key, reason, text)]
        return Later(NEVER_SECONDS)

    def _wait(self, unit: Unit, suspend: Suspend, wake_at: int | None, execution: Execution | None = None) -> Later:
        changes: list[RunChange] = [] if execution is None else execution.notes
        if suspend.signals or suspend.pausing:
            changes = [*changes, suspend]
        unit.effects += changes
        if wake_at is None:
            return Later(NEVER_SECONDS)
        return Later(max(0.0, (wake_at - unit.engine.clock.now()) / 1_000_000))

    async def died(self, letter: Any) -> None:
        """A run that could not go on, past its wall limit or dead with its worker, has failed. It is dealt with as a run:
        its letter would only bring back a message whose run has ended."""
        unit = current_unit.get()
        assert unit is not None
        unit.effects.append(Resolve(letter.id, "noted", "the run is errored: penstock workflows restart"))
        begun = msgspec.json.decode(letter.body, type=Begun)
        error = f"{letter.error_class or letter.reason}: {letter.error_message or letter.reason}"
        key = key_of(self._name, begun.run)
        unit.effects += [EndRun(key, ERRORED, None, error, self._kept_seconds, begun.child, begun.generation)]
        unit.engine.events.emit(RunFailed(self._name, begun.run, error))
