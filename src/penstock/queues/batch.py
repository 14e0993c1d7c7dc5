"""Many messages at once: one unit of work for all of them, and one of its own for each that asks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from penstock.contracts.effects import Settle
from penstock.model.envelope import class_named, decoder
from penstock.model.errors import PenstockError, UnitClosed
from penstock.model.message import Delivery, checksum
from penstock.model.outcome import DONE, Dead, Settlement, describe
from penstock.model.times import Span, in_seconds
from penstock.queues.message import Message, final_outcome
from penstock.queues.queue import Queue
from penstock.queues.runner import BatchUnit, Runner, Settler, keeps_effects, leave_to_others, refuse_damaged
from penstock.runtime.slots import NOT_BEGUN, BlameTracked, CpuLimited, Slot, SlotPool, contain
from penstock.runtime.unit import AwaitedUnit, current_unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.worker import Worker

T_co = TypeVar("T_co", covariant=True)
BUDGET_SHARE = 2 / 3  # of the wall limit: messages that have not begun by then are released
HAND_BACK_SECONDS = 5.0


class Batch(Generic[T_co]):
    """What a batch handler gets. What it says nothing about is acknowledged if it returns, and retried if it raises."""

    def __init__(self, queue: str, messages: Sequence[Message[T_co]], *, budget_seconds: float) -> None:
        self.queue = queue
        self.messages = messages
        self._budget_seconds = budget_seconds
        self._time = asyncio.get_running_loop().time
        self._began = self._time()

    def __iter__(self) -> Iterator[Message[T_co]]:
        return iter(self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def ack_all(self) -> None:
        """Acknowledges every message about which nothing was said so far."""
        for message in self.messages:
            message.ack()

    def retry_all(self, delay: Span | None = None) -> None:
        """Asks for another attempt for every message about which nothing was said so far."""
        for message in self.messages:
            message.retry(delay)

    def within(self, seconds: Span | None = None) -> Iterator[Message[T_co]]:
        """Yield the messages one by one until the time is spent; release the rest for 5 s without an attempt."""
        budget = self._budget_seconds if seconds is None else in_seconds(seconds)
        for index, message in enumerate(self.messages):
            if self._time() - self._began >= budget:
                for left in self.messages[index:]:
                    left.later(HAND_BACK_SECONDS)
                return
            yield message

    def __repr__(self) -> str:
        return f"<Batch of {len(self.messages)} on {self.queue}>"


class BatchRunner:
    def __init__(
        self, worker: Worker, engine: Engine, queue: Queue[Any], slots: SlotPool, settler: Settler, runner: Runner
    ) -> None:
        self._worker = worker
        self._engine = engine
        self._queue = queue
        self._slots = slots
        self._settler = settler
        self._runner = runner
        self._loop = asyncio.get_running_loop()
        self._decoders = {name: decoder(accepted) for name, accepted in (queue.accepts or {}).items()}
        self._budget_seconds = queue.settings.timeout_seconds * BUDGET_SHARE

    async def run(self, slot: Slot, deliveries: Sequence[Delivery]) -> None:
        self._engine.faults.at("handler.before")
        messages = [message for delivery in deliveries if (message := self._opened(delivery)) is not None]
        if not messages:
            return
        handler = self._queue.batches
        assert handler is not None
        unit = BatchUnit(self._engine, None, handler.task, None)
        unit.settler = self._settler
        # Of the shallowest: with the deepest, messages that only met in a batch would soon look like one long chain.
        unit.origin = min((message.delivery for message in messages), key=lambda each: each.depth)
        unit.fences = [_fence(message.delivery, None) for message in messages]
        unit.slot = slot
        slot.unit = unit
        slot.outside = current_unit.set(unit)
        self._engine.gate.running += 1
        if self._worker.tells_received:
            for message in messages:
                self._worker.tell_received(message.delivery)
        self._slots.begin_batch(slot, [message.delivery.seq for message in messages])
        coroutine: Any = handler.function(Batch(self._queue.name, messages, budget_seconds=self._budget_seconds))
        if (cpu_timeout_seconds := self._queue.settings.cpu_timeout_seconds) is not None:
            coroutine = CpuLimited(coroutine, slot, cpu_timeout_seconds)
        rest = BlameTracked(coroutine, NOT_BEGUN, self._worker.cells, slot.mark)
        self._end(slot, messages, await self._runner.outcome(slot, rest))

    def _opened(self, delivery: Delivery) -> Message[Any] | None:
        """A message as the handler gets it; what is damaged, unknown or malformed ends here, alone."""
        if delivery.checksum != checksum(delivery.id, delivery.body):
            refuse_damaged(self._settler, delivery)
            return None
        if self._queue.accepts is None:
            decode = decoder(class_named(delivery.type))
        elif delivery.type in self._decoders:
            decode = self._decoders[delivery.type]
        else:
            self._worker.spawn(leave_to_others(self._engine, self._settler, delivery))
            return None
        try:
            return Message(delivery, decode(delivery.body), self)
        except BaseException as error:  # raised by a class of the user, or for a body nested too deep
            self._settler.put(delivery, Dead("malformed", describe(contain(error)), charged=False))
            return None

    def _end(self, slot: Slot, messages: Sequence[Message[Any]], outcome: object) -> None:
        """Everything that did not settle on its own settles now, in the commit of what the batch wrote and sent."""
        unit = slot.unit
        assert isinstance(unit, BatchUnit)
        current_unit.reset(slot.outside)
        self._slots.end_batch(slot)
        self._runner.left(slot, unit)
        held_nothing = not unit.grows
        if not keeps_effects(outcome):
            unit.discard()
        final = partial(final_outcome, ended=outcome, held_nothing=held_nothing)
        said = {message.delivery.seq: message.outcome for message in messages if message.outcome is not None}
        if said or outcome is not None:
            unit.fences = [
                Settle(delivery, self._settler.decide(delivery, final(said.get(delivery.seq)), unit.task))
                for delivery, *_ in unit.settles()
            ]
        else:
            unit.fences = [_fence(delivery, DONE) for delivery, *_ in unit.settles()]
        self._runner.ended += len(messages)
        self._engine.faults.at("unit.sealed")
        if unit.fences or unit.effects:
            self._engine.scheduler.put(unit)

    @asynccontextmanager
    async def own_unit(self, message: Message[Any]) -> AsyncIterator[None]:
        """`async with message:` saves what is done inside together with the message's settlement. A failure inside is this
        message's alone: it is noted, and the handler continues after the block."""
        outer = current_unit.get()
        if not isinstance(outer, BatchUnit):
            raise PenstockError("`async with message:` blocks cannot be nested, and end with their batch.")
        _check_open(outer, message)
        unit = AwaitedUnit(self._engine, message.delivery, outer.task, "")
        before = current_unit.set(unit)
        began = self._loop.time()
        raised: Exception | None = None
        try:
            yield
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            raised = contain(error)
        finally:
            current_unit.reset(before)
            unit.closed = True
        # Looked at again: a task that its handler forgot may come here after the batch, or after another one like it.
        _check_open(outer, message)
        self._settler.decide_unit(unit, final_outcome(message.outcome, raised, held_nothing=not unit.grows), raised)
        outer.fences = [fence for fence in outer.settles() if fence.delivery is not message.delivery]
        self._engine.scheduler.put(unit)
        cancelled: asyncio.CancelledError | None = None
        refused: BaseException | None = None
        try:
            await unit.settled()
        except asyncio.CancelledError as error:
            cancelled, refused = error, unit.outcome.exception()
        except Exception as error:
            refused = error
        if isinstance(refused, Exception):
            self._settler.refused(message.delivery, unit.task, refused)
        else:
            self._slots.settled(outer.slot, message.delivery.seq)
            if unit.settlement is not None:
                self._settler.report(message.delivery, unit.settlement, began, self._loop.time())
        if cancelled is not None:
            raise cancelled


def _fence(delivery: Delivery, settlement: Settlement | None) -> Settle:
    """Made through the tuple itself: twice as quick as calling the class, and two are made for every message."""
    return tuple.__new__(Settle, (delivery, settlement, 0))


def _check_open(batch: BatchUnit, message: Message[Any]) -> None:
    """One message settled twice would be our own mistake in the eyes of the store."""
    if batch.closed:
        raise UnitClosed
    if all(fence.delivery is not message.delivery for fence in batch.settles()):
        raise PenstockError(f"{message!r} is settled already.")
