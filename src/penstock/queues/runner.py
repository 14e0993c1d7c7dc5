"""Runs handlers of single messages in slots, step by step, and settles each with its answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.contracts.running_handlers import CURRENT
from penstock.contracts.workers import HandlerRow
from penstock.model.errors import HandlerExit, LeaseLost, PenstockError, StoreError
from penstock.model.ids import as_text
from penstock.model.message import Delivery, checksum
from penstock.model.outcome import DONE, RELEASED, Again, Dead, Failure, Held, Settlement, Split, describe, settle
from penstock.model.retry import Retry
from penstock.queues.message import Message, final_outcome
from penstock.queues.queue import Queue
from penstock.runtime.events import HandlerOverran
from penstock.runtime.slots import BlameTracked, CpuLimited, Slot, SlotPool, contain, forked, leave_child
from penstock.runtime.unit import AwaitedUnit, Unit, current_unit

if TYPE_CHECKING:
    from penstock.queues.handler import Handler
    from penstock.runtime.engine import Engine
    from penstock.runtime.worker import Worker

ELSEWHERE_SECONDS = 5.0  # what this worker does not know waits so long for one that does


class HandlerTimeout(PenstockError):
    """The handler ran past its queue's timeout and was cancelled. Raise `timeout=`, or split the work."""


class CpuTimeout(PenstockError):
    """The handler held the processor past its queue's limit and was cancelled. Raise `cpu_timeout=`, or split the work."""


class Runner:
    def __init__(self, worker: Worker, engine: Engine, queue: Queue[Any], slots: SlotPool, settler: Settler) -> None:
        self._worker = worker
        self._engine = engine
        self._queue = queue
        self._handlers = queue.handlers
        self._cpu_seconds = queue.settings.cpu_timeout_seconds
        self._wall_seconds = queue.settings.timeout_seconds
        self._slots = slots
        self._settler = settler
        self._cells = worker.cells
        self._tells_received = worker.tells_received
        self._at = engine.faults.at
        self._loop = asyncio.get_running_loop()
        self.ended = 0  # handlers that have ended since the last look

    def begin(self, slot: Slot, delivery: Delivery) -> BlameTracked | None:
        """Runs a handler up to its first wait. Most of the cost of a message that never waits is here; what comes back
        is the rest of one that does."""
        self._at("handler.before")
        handlers = self._handlers.get(delivery.type)
        if (
            handlers is None
            or len(handlers) != 1
            or delivery.handler
            or delivery.checksum != checksum(delivery.id, delivery.body)
        ):
            handler = self._chosen(delivery, handlers or ())
            if handler is None:
                return None
        else:
            handler = handlers[0]
        try:
            payload = handler.decode(delivery.body)
        except BaseException as error:  # raised by a class of the user, or for a body nested too deep
            self._settler.put(delivery, Dead("malformed", describe(contain(error)), charged=False))
            return None
        unit = MessageUnit(self._engine, delivery, handler.task, "")
        unit.settler = self._settler
        slot.unit = unit
        slot.outside = current_unit.set(unit)
        self._engine.gate.running += 1
        self._slots.begin(slot, delivery.seq)
        if self._tells_received:
            self._worker.tell_received(delivery)
        cells = self._cells
        cells[CURRENT] = slot.mark
        outcome: object
        try:
            if handler.takes_message:
                slot.message = Message(delivery, payload)
                coroutine = handler.function(payload, slot.message)
            else:
                coroutine = handler.function(payload)
            if self._cpu_seconds is not None:
                coroutine = CpuLimited(coroutine, slot, self._cpu_seconds)  # type: ignore[assignment]
            awaited = coroutine.send(None)  # type: ignore[attr-defined]
        except StopIteration as stop:
            outcome = stop.value
        except asyncio.CancelledError:
            outcome = self.cancelled(slot)
        except BaseException as error:
            outcome = contain(error)
        else:
            return BlameTracked(coroutine, awaited, cells, slot.mark)  # type: ignore[arg-type]
        finally:
            if forked:
                leave_child()
            cells[CURRENT] = 0
        self._end(slot, outcome)
        return None

    async def finish(self, slot: Slot, rest: BlameTracked) -> None:
        self._end(slot, await self.outcome(slot, rest))

    async def outcome(self, slot: Slot, rest: BlameTracked) -> object:
        """Return what a handler answers or raises."""
        try:
            outcome: object = await rest
        except asyncio.CancelledError:
            outcome = self.cancelled(slot)
        except Exception as error:
            outcome = error
        if slot.overdue and slot.task is not None and not isinstance(outcome, HandlerTimeout | CpuTimeout):
            slot.task.uncancel()  # it finished in spite of being cancelled
        return outcome

    def _end(self, slot: Slot, outcome: object) -> None:
        """The handler is done: its unit is sealed and goes to the committer with its settlement."""
        unit = slot.unit
        assert isinstance(unit, MessageUnit)
        current_unit.reset(slot.outside)
        self._slots.end(slot)
        self.left(slot, unit)
        ended = outcome
        if slot.message is not None:
            outcome = final_outcome(slot.message.outcome, outcome, held_nothing=not unit.grows)
            slot.message = None
        if outcome is None:
            unit.settle(DONE)
        else:
            self._settler.decide_unit(unit, outcome, ended)
        self.ended += 1
        self._at("unit.sealed")
        self._engine.scheduler.put(unit)

    def left(self, slot: Slot, unit: MessageUnit | BatchUnit) -> None:
        """A handler has ended: nothing joins its unit any more."""
        gate = self._engine.gate
        gate.running -= 1
        if gate.draining:
            gate.left()
        self._at("handler.after")
        unit.closed = True
        unit.started, unit.ended = slot.started, self._loop.time()
        if unit.ended - unit.started > self._wall_seconds and not slot.overdue:
            assert unit.origin is not None
            overrun = (
                self._queue.name,
                as_text(unit.origin.id),
                unit.task,
                unit.ended - unit.started,
                self._wall_seconds,
            )
            self._engine.events.emit(HandlerOverran(*overrun))

    def cancelled(self, slot: Slot) -> object:
        """Return what a cancelled handler settles with: past a limit, for a stop, or by user code, which is its failure."""
        task = slot.task
        assert task is not None
        if slot.overdue:
            task.uncancel()
            held = slot.overdue == "cpu_timeout"
            limit, seconds = (CpuTimeout, self._cpu_seconds) if held else (HandlerTimeout, self._wall_seconds)
            passed = f"{seconds:g} s of queue {self._queue.name!r} and was cancelled"
            return limit(f"The handler ran past the {passed}. Raise `{slot.overdue}=`, or split the work.")
        if self._worker.stopping:
            task.uncancel()
            return RELEASED
        self._worker.require_running()
        while task.uncancel():
            pass
        return HandlerExit(
            "The handler's own code cancelled it: `task.cancel()` on its own task, or a CancelledError that it let pass."
        )

    # -- messages that need a second look ------------------------------------------------------------------

    def _chosen(self, delivery: Delivery, handlers: tuple[Handler, ...]) -> Handler | None:
        """Return the handler of a row that names one. A row of a type with several becomes one row each. A row that no
        handler here accepts is left to other workers, and a damaged one is not delivered."""
        if delivery.checksum != checksum(delivery.id, delivery.body):
            refuse_damaged(self._settler, delivery)
            return None
        if handlers and not delivery.handler:
            if len(handlers) == 1:
                return handlers[0]
            self._settler.put(delivery, Split(tuple(handler.name for handler in handlers)))
            return None
        for handler in handlers:
            if handler.name == delivery.handler:
                return handler
        self._worker.spawn(leave_to_others(self._engine, self._settler, delivery))
        return None


def refuse_damaged(settler: Settler, delivery: Delivery) -> None:
    failure = Failure("DamagedBody", "the body on disk differs from what was sent; it was not delivered")
    settler.put(delivery, Dead("corrupt", failure, charged=False))


async def leave_to_others(engine: Engine, settler: Settler, delivery: Delivery) -> None:
    """A type that this worker does not know may be one that another does, as in the middle of a deploy."""
    wanted = HandlerRow(delivery.queue, delivery.type, delivery.handler)
    if await engine.in_writer(engine.writer.workers.knows, wanted):
        settler.put(delivery, Again(ELSEWHERE_SECONDS, charged=False))
        return
    named = f" called {delivery.handler!r}" if delivery.handler else ""
    failure = Failure("UnknownType", f"no handler{named} for {delivery.type!r} is registered on {delivery.queue!r}")
    settler.put(delivery, Dead("unknown_type", failure, charged=False))


# -- from an answer to a settlement, and what to do when the commit refuses it ---------------------------------------


class BadAnswer(PenstockError):
    """The handler's answer, or its exception, cannot be used."""


class MessageUnit(Unit):
    """The unit of one delivery. Its settler receives the outcome, unless it is the expected one."""

    __slots__ = ("ended", "settler", "started")
    settler: Settler
    started: float
    ended: float

    def finished(self, error: Exception | None) -> None:
        settler = self.settler
        if error is None and settler.note is not None:
            settler.note(self.delivery, self.settlement, self.started, self.ended)
        if error is not None or settler.tells:
            settler.finished(self, error)


class BatchUnit(Unit):
    """The unit of a batch: settles all its messages that did not settle in a unit of their own."""

    __slots__ = ("ended", "settler", "slot", "started")
    settler: Settler
    slot: Slot
    started: float
    ended: float

    def finished(self, error: Exception | None) -> None:
        self.settler.batch_finished(self, error)


class Settler:
    def __init__(self, worker: Worker, engine: Engine, queue: str, retry: Retry) -> None:
        self._worker = worker
        self._engine = engine
        self._queue = queue
        self._retry = retry
        self._share = engine.surroundings.random.random
        self.tells = worker.tells  # a listener receives every settlement
        self.note: Any = engine.history.settled if engine.history.is_kept else None  # called for every message

    def decide(self, delivery: Delivery, outcome: object, task: str) -> Settlement:
        """Return the settlement of one message; report a failure at once."""
        if outcome is None:
            return DONE
        if isinstance(outcome, Again | Dead):
            return outcome
        try:
            settlement = settle(outcome, attempt=delivery.attempt, retry=self._retry, share=self._share())
        except Exception as error:
            # `Later("soon")`, or an exception whose text cannot be read, is a failure of the handler and not of its worker.
            outcome = BadAnswer(f"The handler's answer {_named(outcome)} is not valid: {error!r}.")
            settlement = settle(outcome, attempt=delivery.attempt, retry=self._retry)
        if isinstance(outcome, Exception):
            self._worker.tell_failure(delivery, outcome, settlement, task)
        return settlement

    def decide_unit(self, unit: Unit, outcome: object, ended: object) -> None:
        """Seals the unit of one message. What it collected goes where its handler failed, whatever was said before:
        `ended` is how the handler itself ended."""
        assert unit.delivery is not None
        settlement = self.decide(unit.delivery, outcome, unit.task)
        charged = isinstance(settlement, Again) and settlement.charged
        if charged or not keeps_effects(ended) or not keeps_effects(outcome):
            unit.discard()
        unit.settle(settlement)

    def put(self, delivery: Delivery, settlement: Settlement, task: str = "") -> None:
        """Settles a message with which nothing was done."""
        unit = MessageUnit(self._engine, delivery, task or self._queue, "")
        unit.settler = self
        unit.started = unit.ended = 0.0
        unit.closed = True
        unit.settle(settlement)
        self._engine.scheduler.put(unit)

    def release(self, delivery: Delivery) -> None:
        self.put(delivery, RELEASED)

    async def hold(self, delivery: Delivery, seconds: float) -> None:
        """Renew the lease of what has not begun; `LeaseLost` if another worker has claimed it."""
        unit = AwaitedUnit(self._engine, delivery, self._queue, "")
        unit.closed = True
        unit.settle(Held(seconds))
        self._engine.scheduler.put(unit)
        await unit.settled()

    # -- the commit is known ------------------------------------------------------------------------------

    def finished(self, unit: MessageUnit, error: Exception | None) -> None:
        """A unit that the database refused failed like its handler; a lost lease is not ours."""
        assert unit.delivery is not None
        assert unit.settlement is not None
        if error is None:
            self._worker.tell_settled(unit.delivery, unit.settlement)
        else:
            self.refused(unit.delivery, unit.task, error)

    def refused(self, delivery: Delivery, task: str, error: Exception) -> None:
        if isinstance(error, LeaseLost):
            self._worker.tell_lost(delivery)
        elif not self._is_beyond_help(error):
            self.put(delivery, self.decide(delivery, error, task), task)

    def batch_finished(self, unit: BatchUnit, error: Exception | None) -> None:
        if error is None:
            for delivery, settlement, _ in unit.settles() if self.tells or self.note is not None else ():
                if settlement is not None:
                    self.report(delivery, settlement, unit.started, unit.ended)
        elif isinstance(error, LeaseLost):
            # One of them is not ours any more. The others are, and end one by one: again, if their work is lost with it.
            for delivery, settlement, _ in unit.settles():
                self.put(delivery, RELEASED if unit.grows or settlement is None else settlement, unit.task)
        elif not self._is_beyond_help(error):
            for delivery, *_ in unit.settles():
                self.put(delivery, self.decide(delivery, error, unit.task), unit.task)

    def report(self, delivery: Delivery, settlement: Settlement, started: float, ended: float) -> None:
        """One message of a batch is settled. The times are the loop's."""
        if self.note is not None:
            self.note(delivery, settlement, started, ended)
        if self.tells:
            self._worker.tell_settled(delivery, settlement)

    def _is_beyond_help(self, error: Exception) -> bool:
        """Nothing can be written any more; the lease or the next start returns the row."""
        return isinstance(error, StoreError) and self._engine.scheduler.broken is not None


def keeps_effects(outcome: object) -> bool:
    """`Later` and `Discard` are answers, not failures: what the handler wrote before them is kept."""
    return not isinstance(outcome, Exception | Again | Dead)


def _named(answer: object) -> str:
    try:
        return repr(answer)[:200]
    except Exception:
        return f"a {type(answer).__qualname__}"
