"""A workflow as its callers see it: `research.start(7)` begins a run, `research["cluster-7"]` names one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, ParamSpec, TypeVar, cast

import msgspec

from penstock.contracts.audit import Audit
from penstock.contracts.runs import NewRun, NewSignal, RunRow
from penstock.model.errors import BadMessage, NoSuchRun
from penstock.model.expectation import signal_of
from penstock.model.ids import as_text
from penstock.model.run import COMPLETE, ENDED, PENDING, SIGNAL, StepRecord, check_name, is_made, key_of, made_id
from penstock.model.times import from_micros, in_seconds
from penstock.runtime.audit import audit, record
from penstock.runtime.unit import Unit, require_unit
from penstock.workflows.executor import Begun
from penstock.workflows.inputs import Inputs, restored, stored
from penstock.workflows.steps import StepFailed

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.queue import Queue
    from penstock.runtime.engine import Engine

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

LOOK_SECONDS, LOOK_SECONDS_MAX = 0.01, 0.5  # how often a result is looked for


class StepState(NamedTuple):
    """One step of a run, for people."""

    name: str
    kind: str
    state: str
    attempts: int
    started_at: datetime
    ended_at: datetime | None
    due_at: datetime | None
    result: Any
    error: str | None


class RunState(NamedTuple):
    """A run as it stands."""

    id: str
    workflow: str
    state: str
    reason: str | None
    input: Any
    result: Any
    error: str | None
    correlation_id: str
    created_at: datetime
    ended_at: datetime | None
    due_at: datetime | None
    steps: list[StepState]


class NotCompleted(StepFailed):
    """The run whose result was asked for did not complete."""


class Workflow(Generic[P, R]):
    """Made by `@app.workflow`."""

    def __init__(
        self,
        home: App,
        name: str,
        function: Callable[..., Awaitable[R]],
        inputs: Inputs,
        queue: Queue[Any],
        *,
        priority: int,
        kept_seconds: float,
    ) -> None:
        self.home = home
        self.name = name
        self.function = function
        self.inputs = inputs
        self.queue = queue
        self.priority = priority
        self.kept_seconds = kept_seconds

    def start(self, *arguments: P.args, **named: P.kwargs) -> Handle[P, R]:
        """Begins a run when the current unit of work commits. It gets an id of its own."""
        key = require_unit(self.home).next_id("workflow.run")
        return self._start(made_id(key), key, arguments, named, self.priority)

    def __getitem__(self, id: str) -> Handle[P, R]:
        return self.get(id)

    def get(self, id: str, *, priority: int | None = None) -> Handle[P, R]:
        """The run of this id, which may not have begun. `priority` is that of a run that this handle starts."""
        return Handle(self, check_name(id, "a run"), self.priority if priority is None else priority)

    def new_run(
        self,
        unit: Unit,
        id: str,
        key: bytes,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        priority: int,
        parent: tuple[bytes, str] | None = None,
    ) -> NewRun:
        given = self.inputs.encoded(arguments, named)
        message = self.queue._build(
            unit, Begun(run=id, input=msgspec.Raw(given), child=parent is not None), id=key, priority=priority
        )
        above, step = parent or (None, None)
        return NewRun(key, self.name, id, given, above, step, message)

    def _start(
        self, id: str, key: bytes, arguments: tuple[Any, ...], named: dict[str, Any], priority: int
    ) -> Handle[P, R]:
        unit = require_unit(self.home)
        run = self.new_run(unit, id, key, arguments, named, priority)
        unit.add(run, len(run.input) + len(run.message.body))
        record(unit, audit(unit.engine, "workflows start", "run", f"{self.name}/{id}", key))
        return Handle(self, id, priority, key)

    def __repr__(self) -> str:
        return f"<Workflow {self.name}>"


class Handle(Generic[P, R]):
    """One run, from outside it."""

    def __init__(self, workflow: Workflow[P, R], id: str, priority: int, key: bytes | None = None) -> None:
        self._workflow = workflow
        self._priority = priority
        self.id = id
        self.key = key_of(workflow.name, id) if key is None else key

    def start(self, *arguments: P.args, **named: P.kwargs) -> Handle[P, R]:
        """Begins this run when the current unit of work commits. If there is one of this id, ended or not, it stays as it
        is."""
        if is_made(self.id):
            raise BadMessage(
                f"{self.id!r} is an id of the form that the engine generates. Start the run without one, or under another."
            )
        return self._workflow._start(self.id, self.key, arguments, named, self._priority)

    def signal(self, name: str, payload: object = None) -> None:
        """Send a signal to the run when the current unit of work commits. The commit raises `BadSignal` if the run waits for
        it with a type that the payload does not fit. A run that has ended ignores it."""
        body = stored(payload, name, "Signal")
        unit = require_unit(self._workflow.home)
        unit.add(NewSignal(self.key, check_name(name, "a signal"), body), len(body))
        record(unit, self._audit(unit.engine, "signal", signal=name))

    async def status(self) -> RunState:
        engine = await self._workflow.home._opened()
        return state_of(*await _found(engine, self))

    async def waits_for(self) -> list[str]:
        """Return the names of the signals that the run waits for now."""
        _, steps = await _found(await self._workflow.home._opened(), self)
        waits = [step for step in steps if step.kind == SIGNAL and step.state == PENDING]
        return [signal_of(step.result) if step.result else step.name for step in waits]

    async def result(self, timeout: float | timedelta | None = None) -> R:
        """Waits for the run to end. Raises `NotCompleted` if it does not complete."""
        engine = await self._workflow.home._opened()
        pause = LOOK_SECONDS
        async with asyncio.timeout(None if timeout is None else in_seconds(timeout)):
            while True:
                row = await engine.in_writer(engine.writer.runs.find, self.key, now=engine.clock.now())
                if row is None:
                    raise _unknown(self)
                if row.state == COMPLETE:
                    return cast(R, restored(row.result or b"null", self._workflow.function))
                if row.state in ENDED:
                    error_class = (row.error or row.state).partition(": ")[0]
                    raise NotCompleted(
                        f"Run {self.id!r} of {self._workflow.name!r} was {row.state}: {row.error or 'by an operator'}",
                        name=self.id,
                        error_class=error_class,
                    )
                await asyncio.sleep(pause)
                pause = min(2 * pause, LOOK_SECONDS_MAX)

    # -- what an operator does ------------------------------------------------------------------------------

    async def pause(self) -> None:
        """It stops before its next step, or where it waits, until `resume`."""
        await self._change("pause", "paused")

    async def resume(self) -> None:
        await self._change("resume", "resumed")

    async def terminate(self) -> None:
        """It ends here, and its children with it: what it is doing saves nothing any more."""
        await self._change("terminate", "terminated", kept_seconds=self._workflow.kept_seconds)

    async def _change(self, verb: str, done: str, **more: float) -> None:
        engine = await self._workflow.home._opened()
        change = getattr(engine.writer.runs, verb)
        await self._operate(engine, partial(change, self.key, now=engine.clock.now(), **more), verb, done)

    async def restart(self, *, step: str | None = None) -> None:
        """Does it anew, from the beginning or from a step on: what was done before that step stays done."""
        engine = await self._workflow.home._opened()
        row, steps = await _found(engine, self)
        position = 0
        if step is not None:
            position = next((each.position for each in steps if each.name == step), -1)
            if position < 0:
                known = ", ".join(each.name for each in steps) or "none yet"
                raise NoSuchRun(
                    f"Run {self.id!r} has no step {step!r}. It has: {known}.", step=step, code="no_such_step"
                )
        work = partial(self._restarted, engine, row, position)
        await self._operate(engine, work, "restart", "restarted")

    def _restarted(self, engine: Engine, row: RunRow, position: int) -> set[str]:
        begun = Begun(
            run=row.id, input=msgspec.Raw(row.input), generation=row.generation + 1, child=row.parent is not None
        )
        unit = Unit(engine, None, "", None)
        message = self._workflow.queue._build(unit, begun, id=self.key, priority=row.priority)
        # It is still the same run: it began when it did, whatever its code makes of that.
        message = message._replace(correlation_id=bytes(row.correlation_id), sent_at=row.created_at)
        return engine.writer.runs.restart(
            self.key, position, row.generation, message, kept_seconds=self._workflow.kept_seconds
        )

    def _audit(self, engine: Engine, verb: str, **details: object) -> Audit | None:
        name = f"{self._workflow.name}/{self.id}"
        return audit(engine, f"workflows {verb}", "run", name, self.key, **details)

    async def _operate(self, engine: Engine, work: Callable[[], set[str]], verb: str, done: str) -> None:
        if not await engine.operate(work, self._audit(engine, verb)):
            row, _ = await _found(engine, self)
            raise BadMessage(f"Run {self.id!r} of {self._workflow.name!r} is {row.state} and was not {done}.")

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self._workflow.name}>"


async def _found(engine: Engine, handle: Handle[Any, Any]) -> tuple[RunRow, list[StepRecord]]:
    runs = engine.writer.runs

    def find() -> tuple[RunRow | None, list[StepRecord]]:
        return runs.find(handle.key, now=engine.clock.now()), runs.steps(handle.key)

    row, steps = await engine.in_writer(find)
    if row is None:
        raise _unknown(handle)
    return row, steps


def _unknown(handle: Handle[Any, Any]) -> NoSuchRun:
    return NoSuchRun(f"Workflow {handle._workflow.name!r} has no run {handle.id!r}.", id=handle.id)


def state_of(row: RunRow, steps: list[StepRecord]) -> RunState:
    return RunState(
        row.id,
        row.workflow,
        row.state,
        row.reason,
        _plain(row.input),
        _plain(row.result),
        row.error,
        as_text(bytes(row.correlation_id)),
        from_micros(row.created_at),
        _moment(row.ended_at),
        _moment(row.due) if row.state == "waiting" else None,
        [
            StepState(
                step.name,
                step.kind,
                step.state,
                step.attempts,
                from_micros(step.started_at),
                _moment(step.ended_at),
                _moment(step.due),
                None if step.state == PENDING else _plain(step.result),
                step.error,
            )
            for step in steps
        ],
    )


def _plain(body: bytes | None) -> Any:
    return None if body is None else msgspec.json.decode(body)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else from_micros(micros)
