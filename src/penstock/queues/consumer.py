"""The consumer of one queue: takes claimed messages, runs their handlers in slots, and settles each with its unit."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

import msgspec

from penstock.contracts.running import CURRENT
from penstock.model.errors import LeaseLost, PenstockError, StoreError
from penstock.model.message import Delivery, checksum
from penstock.model.outcome import DONE, HANDED_BACK, Again, Dead, Failure, Settlement, describe, settle
from penstock.queues.message import Message
from penstock.queues.queue import Queue
from penstock.runtime.slots import Slot, SlotPool, Stepped
from penstock.runtime.unit import Unit, current_unit

if TYPE_CHECKING:
    from penstock.queues.queue import Handler
    from penstock.runtime.engine import Engine
    from penstock.runtime.worker import Worker

CLAIM_MAX = 500  # rows of one claim: larger ones gain nothing and hold the writer up
AHEAD_MAX = 2 * CLAIM_MAX  # claimed beyond the free slots when handlers are quick: one claim to run, one under way
AHEAD_SECONDS = 0.1  # and never more than this much work, so that neighbours get their share
UNSTARTED_SECONDS = 30.0  # what could not begin within this time of its claim goes back
YIELD_SECONDS = 0.002  # handlers that never wait still let the loop breathe this often


class WallLimit(PenstockError):
    """The handler ran past its queue's wall limit and was cancelled. Raise `wall=`, or split the work."""


class Consumer:
    def __init__(self, worker: Worker, engine: Engine, queue: Queue) -> None:
        self._worker = worker
        self._engine = engine
        self._settings = queue.settings
        self._handlers = queue.handlers
        self._cells = worker.cells
        self._at = engine.faults.at
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Delivery] = deque()
        self._claimed_at = 0.0
        self._hand_back_timer: asyncio.TimerHandle | None = None
        self._slots = SlotPool(worker.slots, worker.cells, queue.settings.parallel, queue.settings.wall_seconds)
        self._ahead = 0
        self._asked = False  # the next claim is asked for once, at half of what this one brought
        self._finished = 0
        self._since = 0.0
        self.queue = queue.name
        self.tells = worker.tells  # somebody wants to hear of every settlement
        self.lease_micros = int(queue.settings.lease_seconds * 1_000_000)
        engine.gate.when_reopened(self._reopened)

    # -- asked by the due loop ------------------------------------------------------------------------

    def room(self) -> int:
        """Asks again once half of what it may hold is gone, so that claims stay large and never run dry."""
        if self._worker.stopping or self._engine.gate.closed:
            return 0
        free = min(self._settings.parallel - self._slots.busy, self._slots.left())
        waiting = len(self._waiting) - self._slots.starting - free  # for whom no slot is free
        return max(0, min(self._ahead - waiting, CLAIM_MAX)) if waiting <= self._ahead // 2 else 0

    def take(self, deliveries: list[Delivery], *, full: bool) -> None:
        self._engine.faults.at("claim.delivered")
        if self._worker.stopping:
            for delivery in deliveries:
                self._give_back(delivery)
            return
        self._adapt(full)
        self._asked = False
        self._claimed_at = self._loop.time()
        for delivery in deliveries:
            if delivery.crashes:
                self._engine.gate.closed = True  # before its turn comes: what is claimed meanwhile could only wait
                self._worker.spawn(self._run_alone(delivery))
            else:
                self._waiting.append(delivery)
        self._go_on()
        if self._waiting and self._hand_back_timer is None:
            self._hand_back_timer = self._loop.call_later(UNSTARTED_SECONDS, self._hand_back_old)

    def _adapt(self, full: bool) -> None:
        """Claims grow while they come back full, up to what the handlers were seen to finish in a moment."""
        now = self._loop.time()
        rate = self._finished / max(now - self._since, 0.0001)
        self._finished, self._since = 0, now
        if full:
            wished = max(self._settings.parallel, self._ahead * 2)
            self._ahead = min(wished, int(rate * AHEAD_SECONDS), AHEAD_MAX)
        else:
            self._ahead = 0

    # -- running handlers -------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Starts one slot; it starts the next if there is more to do. A slot ends when nothing is left, so none ever waits
        for a wake-up, and handlers that do not wait need only one."""
        if self._slots.starting or not self._waiting or self._engine.gate.closed:
            return
        slot = self._slots.take()
        if slot is not None:
            self._worker.spawn(self._serve(slot), slot)

    def _reopened(self) -> None:
        self._go_on()
        self._engine.due.freed(self.queue)

    async def _serve(self, slot: Slot) -> None:
        self._slots.started()
        waiting, gate, time = self._waiting, self._engine.gate, self._loop.time
        breathe_at = time() + YIELD_SECONDS
        try:
            while waiting and not gate.closed and not self._worker.stopping:
                delivery = waiting.popleft()
                self._go_on()
                if (rest := self._begin(slot, delivery)) is not None:
                    await self._finish(slot, rest)
                if not self._asked and len(waiting) <= self._ahead // 2:
                    self._asked = True
                    self._engine.due.freed(self.queue)
                if time() >= breathe_at:
                    await asyncio.sleep(0)
                    breathe_at = time() + YIELD_SECONDS
        finally:
            self._slots.give(slot)
            self._engine.due.freed(self.queue)

    async def _run_alone(self, delivery: Delivery) -> None:
        async with self._engine.gate.alone():
            slot = None if self._worker.stopping else self._slots.take()
            if slot is None:
                self._give_back(delivery)
                return
            slot.task = asyncio.current_task()
            self._slots.started()
            try:
                if (rest := self._begin(slot, delivery)) is not None:
                    await self._finish(slot, rest)
            finally:
                self._slots.give(slot)

    def _begin(self, slot: Slot, delivery: Delivery) -> Stepped | None:
        """Runs a handler up to its first wait. Most of the cost of a message that never waits is here; what comes back
        is the rest of one that does."""
        self._at("handler.before")
        handler = self._handlers.get(delivery.type)
        if handler is None or delivery.checksum != checksum(delivery.id, delivery.body):
            self._refuse(delivery, handler)
            return None
        try:
            payload = handler.decode(delivery.body)
        except (msgspec.MsgspecError, ValueError) as error:
            self._put(delivery, Dead("malformed", describe(error), charged=False))
            return None
        unit = MessageUnit(self._engine, delivery, handler.name, "")
        unit.consumer = self
        slot.unit = unit
        slot.outside = current_unit.set(unit)
        self._engine.gate.running += 1
        self._slots.begin(slot, delivery.seq)
        cells = self._cells
        cells[CURRENT] = slot.mark
        outcome: object
        try:
            coroutine = (
                handler.function(payload, Message(delivery)) if handler.takes_message else handler.function(payload)
            )
            awaited = coroutine.send(None)
        except StopIteration as stop:
            outcome = stop.value
        except asyncio.CancelledError:
            outcome = self._cancelled(slot)
        except Exception as error:
            outcome = error
        except BaseException:
            self._end(slot, HANDED_BACK)
            raise
        else:
            return Stepped(coroutine, awaited, cells, slot.mark)
        finally:
            cells[CURRENT] = 0
        self._end(slot, outcome)
        return None

    async def _finish(self, slot: Slot, rest: Stepped) -> None:
        outcome: object
        try:
            outcome = await rest
        except asyncio.CancelledError:
            outcome = self._cancelled(slot)
        except Exception as error:
            outcome = error
        except BaseException:
            self._end(slot, HANDED_BACK)
            raise
        if slot.overdue and slot.task is not None and not isinstance(outcome, WallLimit):
            slot.task.uncancel()  # it finished in spite of being cancelled
        self._end(slot, outcome)

    def _end(self, slot: Slot, outcome: object) -> None:
        """The handler is done: its unit is sealed and goes to the committer with its settlement."""
        unit = slot.unit
        assert unit is not None
        current_unit.reset(slot.outside)
        self._slots.end(slot)
        gate = self._engine.gate
        gate.running -= 1
        if gate.watched:
            gate.left()
        self._at("handler.after")
        unit.closed = True
        if outcome is None:
            unit.settlement = DONE
        else:
            self._settle(unit, outcome)
        self._finished += 1
        self._at("unit.sealed")
        self._engine.committer.put(unit)

    def _cancelled(self, slot: Slot) -> object:
        """Cancelled for its wall limit, for a stop, or from within by its own code: each is told apart."""
        task = slot.task
        assert task is not None
        if slot.overdue:
            task.uncancel()
            return WallLimit(
                f"The handler ran past the wall limit of queue {self.queue!r}, {self._settings.wall_seconds:g} s, and was "
                "cancelled. Raise `wall=`, or split the work."
            )
        if self._worker.stopping:
            task.uncancel()
            return HANDED_BACK
        if task.cancelling():
            self._end(slot, HANDED_BACK)
            raise asyncio.CancelledError
        return PenstockError("The handler was cancelled from within.")

    # -- settling ---------------------------------------------------------------------------------------

    def _settle(self, unit: Unit, outcome: object) -> None:
        delivery = unit.delivery
        assert delivery is not None
        if isinstance(outcome, Again | Dead):
            settlement: Settlement = outcome
        else:
            settlement = settle(outcome, attempt=delivery.attempt, retry=self._settings.retry)
        if settlement is not DONE and not _keeps_effects(outcome):
            unit.calls = []
            unit.sends = []
        unit.settlement = settlement
        if isinstance(outcome, Exception):
            self._worker.tell_failure(delivery, outcome, settlement)

    def finished(self, unit: MessageUnit, error: Exception | None) -> None:
        """The commit is known. A unit that the database refused failed like its handler; a lost lease is not ours."""
        delivery = unit.delivery
        assert delivery is not None
        if error is None:
            self._worker.tell_settled(unit)
        elif isinstance(error, LeaseLost):
            self._worker.tell_lost(delivery)
        elif isinstance(error, StoreError) and self._engine.committer.broken is not None:
            pass  # nothing can be written any more; the lease or the next start returns the row
        else:
            again = MessageUnit(self._engine, delivery, unit.task, "")
            again.consumer = self
            again.closed = True
            self._settle(again, error)
            self._engine.committer.put(again)

    def _refuse(self, delivery: Delivery, handler: Handler | None) -> None:
        if handler is None:
            failure = Failure("UnknownType", f"no handler for {delivery.type!r} is registered on {self.queue!r}")
            self._put(delivery, Dead("unknown_type", failure, charged=False))
        else:
            failure = Failure("DamagedBody", "the body on disk differs from what was sent; it was not delivered")
            self._put(delivery, Dead("corrupt", failure, charged=False))

    def _put(self, delivery: Delivery, settlement: Settlement) -> None:
        unit = MessageUnit(self._engine, delivery, self.queue, "")
        unit.consumer = self
        unit.closed = True
        unit.settlement = settlement
        self._engine.committer.put(unit)

    # -- giving back ------------------------------------------------------------------------------------

    def _give_back(self, delivery: Delivery) -> None:
        self._put(delivery, HANDED_BACK)

    def give_back_waiting(self) -> int:
        count = len(self._waiting)
        while self._waiting:
            self._give_back(self._waiting.popleft())
        return count

    def holds(self) -> bool:
        """Whether it has claimed anything that is not settled or given back."""
        return bool(self._waiting) or self._slots.busy > 0

    def cancel_running(self) -> None:
        self._slots.cancel_all()

    def close(self) -> None:
        self._slots.close()
        if self._hand_back_timer is not None:
            self._hand_back_timer.cancel()

    def _hand_back_old(self) -> None:
        self._hand_back_timer = None
        if not self._waiting:
            return
        left = self._claimed_at + UNSTARTED_SECONDS - self._loop.time()
        if left <= 0:
            self.give_back_waiting()
        else:
            self._hand_back_timer = self._loop.call_later(left, self._hand_back_old)


class MessageUnit(Unit):
    """The unit of one delivery. Its consumer hears what became of it, unless that is only what everybody expects."""

    __slots__ = ("consumer",)
    consumer: Consumer

    def finished(self, error: Exception | None) -> None:
        if error is not None or self.consumer.tells:
            self.consumer.finished(self, error)


def _keeps_effects(outcome: object) -> bool:
    """`Later` and `Discard` are answers, not failures: what the handler wrote before them is kept."""
    return not isinstance(outcome, Exception | Again | Dead)
