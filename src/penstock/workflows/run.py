"""A run as its workflow sees it: steps, sleeps, signals, children. What is recorded is not done again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, TypeVarTuple, overload

import msgspec

from penstock.contracts.runs import Signal, TakeSignal
from penstock.model.errors import BadMessage, PenstockError
from penstock.model.expectation import expect
from penstock.model.retry import Retry
from penstock.model.run import (
    CHILD,
    COMPLETE,
    DONE,
    FAILED,
    NEVER_SECONDS,
    PATCH,
    PENDING,
    SIGNAL,
    SLEEP,
    STEP,
    TIMED_OUT,
    Ending,
    Nondeterminism,
    Script,
    StepRecord,
    check_name,
    child_signal,
)
from penstock.model.times import from_micros, in_seconds, to_micros
from penstock.workflows.inputs import restored
from penstock.workflows.steps import TimedOut, child_failed, current_step, failed

if TYPE_CHECKING:
    from penstock.workflows.execution import Execution
    from penstock.workflows.workflow import Workflow

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_ending = msgspec.json.Decoder(Ending).decode
TURNS, MORE_TURNS, TURN_SECONDS = 20, 20, 0.05  # how long a step waits for the branches beside it to ask for theirs


class Suspended(BaseException):
    """Unwinds a workflow that waits. What it has done is recorded; it begins again from there."""


class RunIsOver(PenstockError):
    """This run has ended, or continues in another execution. Use a run only inside its workflow."""


class Run:
    """Given to a workflow first. Between its steps nothing is saved: what writes, sends or calls out belongs in a step."""

    def __init__(
        self,
        workflow: str,
        id: str,
        key: bytes,
        began: int,
        script: Script,
        signals: list[Signal],
        execution: Execution | None,
    ) -> None:
        """Without an execution nothing is done: what is recorded is replayed, and there it ends."""
        self.workflow = workflow
        self.id = id
        self._began = began
        self.key = key
        self._script = script
        self._signals = signals
        self._heard: set[int] = set()  # those of them that this execution has received
        self._execution = execution
        self._sleeps = 0
        self.stopped: BaseException | None = None  # why this execution stops
        self.difference: Nondeterminism | None = None

    @property
    def started_at(self) -> datetime:
        """When the run was started; the same in every execution."""
        return from_micros(self._began)

    @property
    def asked(self) -> int:
        """How many steps, sleeps, waits and children its code has asked for."""
        return self._script.asked

    # -- steps --------------------------------------------------------------------------------------------

    async def step(
        self,
        name: str,
        function: Callable[[*Ts], Awaitable[T]],
        *arguments: *Ts,
        retries: int | Retry | None = None,
        timeout: float | timedelta | None = None,
    ) -> T:
        """Does something once. What the function writes and sends is saved with its result; once that is saved the function
        is never called again in this run. One that raises is retried up to `retries` times; each attempt may take
        `timeout` seconds."""
        record = await self._recorded(name, STEP) if self._asks_for(name) else None
        if record is not None and record.state == DONE:
            result: T = restored(record.result or b"null", function)
            return result
        if record is not None and record.state == FAILED:
            raise failed(name, record.error, record.result)
        execution = self._execution or self.suspend()
        position = self._next_position() if record is None else record.position
        done: T = await execution.attempt(
            self, name, position, record, function, arguments, retries=retries, timeout=_seconds(timeout)
        )
        return done

    async def sleep(
        self,
        seconds: float | timedelta = 0.0,
        *,
        minutes: float = 0.0,
        hours: float = 0.0,
        days: float = 0.0,
        name: str | None = None,
    ) -> None:
        """Sleep for seconds, a `timedelta`, or the sum of what is given. Restarts do not lengthen it.

        Example:
            async def remind(run: ps.Run) -> None:
                await run.sleep(60)
                await run.sleep(timedelta(hours=1))
                await run.sleep(days=2, hours=12)
        """
        wanted = timedelta(days=days, hours=hours, minutes=minutes).total_seconds() + in_seconds(seconds)
        if not 0 <= wanted <= NEVER_SECONDS:
            raise BadMessage(f"A run cannot sleep for {wanted:,.0f} s: it can be 0 to {NEVER_SECONDS:,.0f}.")
        await self._sleep(lambda now: now + int(wanted * 1_000_000), name)

    async def sleep_until(self, moment: datetime, *, name: str | None = None) -> None:
        """Waits until then; a moment that has passed is now."""
        if moment.tzinfo is None:
            raise BadMessage(f"{moment!r} has no time zone. Use datetime(..., tzinfo=UTC).")
        until = to_micros(moment.astimezone(UTC))
        await self._sleep(lambda now: until, name)

    async def _sleep(self, due_at: Callable[[int], int], name: str | None) -> None:
        self._sleeps += 1
        name = name or f"sleep-{self._sleeps}"
        record = await self._recorded(name, SLEEP) if self._asks_for(name) else None
        if record is not None and record.state == DONE:
            return
        execution = self._execution or self.suspend()
        if record is None:
            record = self._new(name, SLEEP, PENDING, due=due_at(execution.now()))
            execution.note(record)
        assert record.due is not None
        while execution.now() < record.due:
            await execution.blocked(self, record.due, None)
        execution.note(record._replace(state=DONE, ended_at=execution.now(), due=None))

    # -- what others say ----------------------------------------------------------------------------------

    @overload
    async def wait_for(
        self, signal: str, type: type[T], *, timeout: float | timedelta | None = None, name: str | None = None
    ) -> T: ...
    @overload
    async def wait_for(
        self, signal: str, type: None = None, *, timeout: float | timedelta | None = None, name: str | None = None
    ) -> Any: ...
    async def wait_for(
        self, signal: str, type: Any = None, *, timeout: float | timedelta | None = None, name: str | None = None
    ) -> Any:
        """Return what came with the first signal of this name that no wait has taken yet, also one that came earlier. Raise
        `TimedOut` if none comes within `timeout` seconds. A payload that does not fit `type` is refused, to its sender or,
        if it came before the wait, with the event `signal.refused`; the run waits on. A second wait for the same signal
        needs a `name` of its own."""
        check_name(signal, "a signal")
        read = msgspec.json.Decoder(Any if type is None else type).decode
        return await self._signalled(
            name or signal, SIGNAL, signal, _seconds(timeout), read, expected=expect(signal, type)
        )

    async def child(self, name: str, workflow: Workflow[P, T], *arguments: P.args, **named: P.kwargs) -> T:
        """Runs another workflow and waits for its result. A child ends with its parent; one that fails raises here."""
        record = await self._recorded(name, CHILD) if self._asks_for(name) else None
        if record is None:
            execution = self._execution or self.suspend()
            execution.begin_child(self.id, (self.key, name), workflow, arguments, named)
            record = self._new(name, CHILD, PENDING)
            execution.note(record)
            await execution.save(self)
        ending = await self._signalled(name, CHILD, child_signal(name), None, _ending, record)
        if ending.state != COMPLETE:
            raise child_failed(name, ending.state, ending.error)
        result: T = restored(bytes(ending.result), workflow.function)
        return result

    async def _signalled(
        self,
        name: str,
        kind: str,
        signal: str,
        timeout: float | None,
        read: Callable[[bytes], Any],
        record: StepRecord | None = None,
        expected: bytes | None = None,
    ) -> Any:
        if record is None:
            record = await self._recorded(name, kind) if self._asks_for(name) else None
        if record is not None and record.state == DONE:
            return read(record.result or b"null")
        if record is not None and record.state == TIMED_OUT:
            raise TimedOut(f"No signal {signal!r} came in time.")
        execution = self._execution or self.suspend()
        if record is None:
            due = None if timeout is None else execution.now() + int(max(0.0, timeout) * 1_000_000)
            record = self._new(name, kind, PENDING, due=due)._replace(result=expected)
            execution.note(record)
        while True:
            found = next((each for each in self._signals if each.name == signal), None)
            if found is not None:
                self._signals.remove(found)
                self._heard.add(found.seq)
                execution.note(TakeSignal(found.seq))
                try:
                    said = read(found.payload)
                except msgspec.ValidationError as error:
                    execution.refused(self, signal, str(error))
                    continue
                execution.note(record._replace(state=DONE, ended_at=execution.now(), due=None, result=found.payload))
                await execution.save(self)  # what was decided stays so, whatever is signalled from now on
                return said
            if record.due is not None and execution.now() >= record.due:
                execution.note(record._replace(state=TIMED_OUT, ended_at=execution.now(), due=None, result=None))
                await execution.save(self)
                raise TimedOut(f"No signal {signal!r} came in time.")
            await execution.blocked(self, record.due, signal)

    # -- changed code ---------------------------------------------------------------------------------------

    def patched(self, name: str) -> bool:
        """Whether this run does the new way of a change: true for runs that come here from now on, false for those that
        were past it. `if run.patched("better-prompt"): ... else: ...` keeps both ways until the old runs are done."""
        self.check_runs()
        decided = self._script.patched(check_name(name, "a patch"))
        if decided is None:
            self._script.patches.add(name)
            if self._execution is not None:
                now = self._execution.now()
                self._execution.note(StepRecord(self.key, self._next_position(), name, PATCH, DONE, 0, now, now))
        return decided is not False

    # -- what was recorded -----------------------------------------------------------------------------------

    def _asks_for(self, name: str) -> bool:
        """Whether something is recorded of which this may be part."""
        self.check_runs()
        try:
            self._script.ask(check_name(name, "a step"))
        except Nondeterminism as difference:
            self.difference = difference
            self.suspend()
        return self._script.is_replaying

    async def _recorded(self, name: str, kind: str) -> StepRecord | None:
        """What is recorded of it, once it is its turn."""
        script = self._script
        try:
            for turn in range(TURNS + MORE_TURNS):
                if script.is_next(name):
                    return script.found(name, kind)
                await asyncio.sleep(0 if turn < TURNS else TURN_SECONDS)
                self.check_runs()
            raise script.differs(name)
        except Nondeterminism as difference:
            self.difference = difference
            self.suspend()

    def _new(self, name: str, kind: str, state: str, *, due: int | None = None) -> StepRecord:
        assert self._execution is not None
        return StepRecord(self.key, self._next_position(), name, kind, state, 0, self._execution.now(), None, due)

    def _next_position(self) -> int:
        position = self._script.next_position
        self._script.next_position += 1
        return position

    def check_runs(self) -> None:
        """Raise what ends the run's function where no step may begin now: the run was stopped, or a step is under way."""
        if self.stopped is not None:
            if isinstance(self.stopped, Suspended):
                raise self.stopped
            raise RunIsOver
        if current_step.get() is not None:
            raise BadMessage("A step was called inside another step. Call steps from the workflow function.")

    def suspend(self) -> NoReturn:
        """Unwind the workflow: it continues in another execution."""
        if self.stopped is None:
            self.stopped = Suspended()
        raise self.stopped

    def ended(self) -> None:
        """The workflow has returned: everything recorded should have been asked for."""
        if self.stopped is None:
            self.stopped = RunIsOver()
            if self._script.is_replaying:
                self.difference = self._script.differs(None)

    def heard(self, signals: list[Signal]) -> None:
        """What was read may be older than what a branch beside has got since."""
        self._signals = [signal for signal in signals if signal.seq not in self._heard]


def _seconds(timeout: float | timedelta | None) -> float | None:
    return None if timeout is None else in_seconds(timeout)
