"""Runs handlers of single messages in slots, step by step."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.contracts.running_handlers import CURRENT
from penstock.contracts.workers import HandlerRow
from penstock.model.errors import HandlerExit, PenstockError
from penstock.model.ids import as_text
from penstock.model.message import Delivery, checksum
from penstock.model.outcome import DONE, HANDED_BACK, Again, Dead, Failure, Split, describe
from penstock.queues.message import Message, final_outcome
from penstock.queues.queue import Queue
from penstock.queues.settling import BatchUnit, MessageUnit, Settler
from penstock.runtime.events import HandlerOverran
from penstock.runtime.slots import BlameTracked, CpuLimited, Slot, SlotPool, contain, forked, leave_child
from penstock.runtime.unit import current_unit

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
        self.ended = 0  # handlers that have ended since somebody last looked

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
        except (
            BaseException
        ) as error:  # also what a class of the user's raises when it is made, or a body nested too deep
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
            told = (self._queue.name, as_text(unit.origin.id), unit.task, unit.ended - unit.started, self._wall_seconds)
            self._engine.events.emit(HandlerOverran(*told))

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
            return HANDED_BACK
        self._worker.require_running()
        while task.uncancel():
            pass
        return HandlerExit(
            "The handler's own code cancelled it: `task.cancel()` on its own task, or a CancelledError that it let pass."
        )

    # -- messages that need a second look ------------------------------------------------------------------

    def _chosen(self, delivery: Delivery, handlers: tuple[Handler, ...]) -> Handler | None:
        """The handler of a row that names one. A row of a type with several becomes one row each; what nobody here knows is
        left to others; what is damaged is not delivered."""
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
    if await engine.in_writer(lambda: engine.writer.workers.knows(wanted)):
        settler.put(delivery, Again(ELSEWHERE_SECONDS, charged=False))
        return
    named = f" called {delivery.handler!r}" if delivery.handler else ""
    failure = Failure("UnknownType", f"no handler{named} for {delivery.type!r} is registered on {delivery.queue!r}")
    settler.put(delivery, Dead("unknown_type", failure, charged=False))
