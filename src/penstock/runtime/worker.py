"""A worker: runs what is due until it is stopped, then finishes or releases its claims."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine, Sequence
from itertools import count
from typing import Any, Protocol

from penstock.contracts import running_handlers
from penstock.contracts.workers import HandlerRow
from penstock.model.errors import PenstockError, StoreError
from penstock.model.ids import as_text
from penstock.model.message import Delivery
from penstock.model.outcome import Again, Dead, Settlement
from penstock.model.queue import is_internal
from penstock.model.times import iso_z
from penstock.runtime.due import ClaimSource
from penstock.runtime.engine import Engine
from penstock.runtime.events import (
    LeaseWasLost,
    LogGrew,
    MessageFailed,
    MessageReceived,
    MessageSettled,
    WorkerStarted,
    WorkerStopped,
)
from penstock.runtime.retention import Retention
from penstock.runtime.slots import Slot, SlotNumbers, forked

GRACE_SECONDS = 25.0  # what running handlers get to finish after a stop; under the 30 s that most supervisors wait
CANCELLED_SECONDS = 5.0  # what a cancelled handler gets to clean up
LOG_BYTES_WARNED = 256_000_000  # of a log that is cut at 64 MB while no reader is open
IDLE_LOOK_SECONDS = 0.02
BEAT_SECONDS = 1.0  # a sign of life while handlers run; the supervisor gives up after ten without


class Consuming(ClaimSource, Protocol):
    def release_waiting(self) -> int: ...
    def cancel_running(self) -> None: ...
    def holds(self) -> bool: ...
    def close(self) -> None: ...


FOLLOW_EVERY = 30  # ticks: how often the time of a server is asked for


class Worker:
    def __init__(self, engine: Engine, *, grace_seconds: float = GRACE_SECONDS) -> None:
        forked.clear()  # a process that was forked before it became a worker is none that a handler forked
        self._engine = engine
        self._grace_seconds = grace_seconds
        self._loop = asyncio.get_running_loop()
        self._tasks: asyncio.TaskGroup
        self._task: asyncio.Task[Any] | None = None
        self._context = contextvars.copy_context()
        self._consumers: Sequence[Consuming] = ()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._beat: asyncio.TimerHandle | None = None
        self.tells = engine.events.wanted(MessageSettled)
        self.tells_received = engine.events.wanted(MessageReceived)
        self._log_is_large = False
        self.stopping = False
        self.cells = engine.presence.cells
        self.slots = SlotNumbers(self.cells)

    async def run(
        self,
        consumers: Sequence[Consuming],
        handlers: Sequence[HandlerRow],
        *,
        expires_after: float | None = None,
        until_idle: bool = False,
        beside: Sequence[Coroutine[Any, Any, None]] = (),
    ) -> None:
        """Return after `stop`, when all claims are settled or released. Raise if the store has failed for good."""
        engine = self._engine
        self._consumers = consumers
        self._task = asyncio.current_task()
        await engine.in_writer(engine.writer.workers.register_handlers, handlers)
        await engine.return_departed()
        engine.listen()
        try:
            async with asyncio.TaskGroup() as self._tasks:
                self._started()
                works = [*beside, Retention(engine, shortest_seconds=expires_after).run()]
                if engine.surroundings.tick_seconds:
                    works.append(self._tick())
                if until_idle:
                    works.append(self._stop_when_idle())
                tasks = [self._tasks.create_task(self._watched(work)) for work in works]
                try:
                    await self._stop.wait()
                except asyncio.CancelledError:
                    self.require_running()
                    raise
                released = await self._drain()
                for task in tasks:
                    task.cancel()
        except BaseExceptionGroup as group:
            raise _first(group) from group
        finally:
            self.stopping = True  # also after a cancellation: a claim that is still under way is released
            engine.scheduler.stop()
            if self._beat is not None:
                self._beat.cancel()
            for consumer in consumers:
                consumer.close()
        if engine.scheduler.broken is not None:
            raise engine.scheduler.broken
        engine.events.emit(WorkerStopped(engine.writer.workers.me, released))

    async def stops_within(self, seconds: float) -> bool:
        """Wait so long, or until the worker is asked to stop; return whether it is."""
        try:
            async with asyncio.timeout(seconds):
                await self._stop.wait()
        except TimeoutError:
            return False
        return True

    def stop(self) -> None:
        """Claims nothing more. A second call cuts the grace short."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        """A failure of the worker's own work cancels everything else. Cancelled messages are released uncharged."""
        try:
            await work
        except Exception:
            self.stopping = True
            raise

    def require_running(self) -> None:
        """A worker is stopped, never cancelled. If user code cancelled it as well, its process dies and is taken for
        killed: what ran is suspected and runs alone. In a program of the user's own, the cancellation passes."""
        if self._engine.die is not None and self._task is not None and self._task.cancelling() and not self.stopping:
            self.suspect_ended()
            self._engine.die("A handler cancelled the tasks of its worker, which ends at once.")

    def suspect_ended(self) -> None:
        """List what has ended and may not be saved as under way: one of those handlers may have broken this process."""
        for unit in self._engine.scheduler.unknown():
            for fence in unit.settles():
                self.slots.note(fence.delivery.seq, running_handlers.KIND_MESSAGE)

    def _started(self) -> None:
        engine, queues = self._engine, [each.queue for each in self._consumers if not is_internal(each.queue)]
        engine.events.emit(WorkerStarted(engine.writer.workers.me, engine.store.location, queues))
        self._give_sign()
        engine.scheduler.begin(self._consumers)

    async def _drain(self) -> int:
        self.stopping = True
        engine = self._engine
        engine.scheduler.stop()
        engine.faults.at("drain.begun")
        released = sum(consumer.release_waiting() for consumer in self._consumers)
        await self._until_quiet(self._grace_seconds)
        if engine.gate.running:
            released += engine.gate.running
            for consumer in self._consumers:
                consumer.cancel_running()
            await self._until_quiet(CANCELLED_SECONDS)
        await engine.scheduler.drained()
        return released

    async def _until_quiet(self, seconds: float) -> None:
        """Wait for the running handlers, at most for the given time, or until a second signal."""
        waiting = [self._loop.create_task(self._engine.gate.quiet()), self._loop.create_task(self._hurry.wait())]
        try:
            await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _stop_when_idle(self) -> None:
        """Stops once nothing runs and nothing is due; what is due later stays for another time."""
        engine, gate = self._engine, self._engine.gate
        # The gate is closed from the moment that a suspect is claimed: until its turn it is in no slot.
        while (
            gate.running
            or gate.closed
            or engine.scheduler.expects_now()
            or any(each.holds() for each in self._consumers)
        ):
            await asyncio.sleep(IDLE_LOOK_SECONDS)
            await engine.scheduler.drained()
        self.stop()

    def spawn(self, work: Coroutine[Any, Any, None], slot: Slot | None = None) -> None:
        """Runs something that this worker waits for. A slot learns which task is its own, so that it can be cancelled."""
        # In the worker's own context: what asks for it may be another handler, whose unit is not this one's.
        task = self._tasks.create_task(self._watched(work), context=self._context.copy())
        if slot is not None:
            slot.task = task

    # -- signs of life and looks around -----------------------------------------------------------------

    def _give_sign(self) -> None:
        self.cells[running_handlers.BEAT] = int(self._engine.clock.monotonic() * 1_000_000)
        if self._engine.surroundings.tick_seconds:
            self._beat = self._loop.call_later(BEAT_SECONDS, self._give_sign)

    async def _tick(self) -> None:
        """Behind the wake-ups, a look once a second that reads no row: for lost hints, and neighbours that died."""
        engine = self._engine
        upkeep = engine.writer.upkeep
        assert engine.surroundings.tick_seconds is not None
        for tick in count(1):
            await asyncio.sleep(engine.surroundings.tick_seconds)
            if self._stop.is_set():
                return
            if tick % FOLLOW_EVERY == 0:
                await engine.follow_server()
            if engine.scheduler.broken is not None:
                self.stop()
                return
            await engine.return_departed()
            changed, log_bytes = await engine.in_writer(lambda: (upkeep.look_around(), upkeep.log_bytes()))
            self._watch_log(log_bytes)
            if changed:
                engine.scheduler.look()
            else:
                engine.scheduler.arm()

    def _watch_log(self, log_bytes: int) -> None:
        """Warn that a long reader keeps SQLite's log from being reused, once each time the log gets large."""
        large = log_bytes > LOG_BYTES_WARNED
        if large and not self._log_is_large:
            self._engine.events.emit(LogGrew(self._engine.store.location, log_bytes))
        self._log_is_large = large

    # -- telling ----------------------------------------------------------------------------------------

    def tell_settled(self, delivery: Delivery, settlement: Settlement) -> None:
        """A settlement has committed."""
        events = self._engine.events
        if events.wanted(MessageSettled):
            events.emit(MessageSettled(*_named(delivery), settlement, *self._sent(delivery)))

    def tell_failure(self, delivery: Delivery, error: Exception, settlement: Settlement, handler: str) -> None:
        failure = settlement.failure if isinstance(settlement, Again | Dead) else None
        event = MessageFailed(
            *_named(delivery),
            f"{type(error).__qualname__}: {error}",
            isinstance(settlement, Again),
            *self._sent(delivery),
            handler,
            failure.traceback if failure else None,
            settlement.seconds if isinstance(settlement, Again) else None,
        )
        self._engine.events.emit(event)

    def tell_received(self, delivery: Delivery) -> None:
        self._engine.events.emit(MessageReceived(*_named(delivery), *self._sent(delivery)))

    def tell_lost(self, delivery: Delivery) -> None:
        self._engine.events.emit(LeaseWasLost(delivery.queue, as_text(delivery.id)))

    def _sent(self, delivery: Delivery) -> tuple[str, str, str, float]:
        """Return the chain that a message belongs to, its sender, when it was sent, and how many milliseconds ago."""
        ago = (self._engine.clock.now() - delivery.sent_at) / 1_000
        return as_text(delivery.correlation_id), delivery.source, iso_z(delivery.sent_at), ago


def _named(delivery: Delivery) -> tuple[str, str, str, int]:
    return delivery.queue, as_text(delivery.id), delivery.type, delivery.attempt


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """One failure is enough to tell: the first that is not a consequence."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            return _first(error)
        if isinstance(error, StoreError | PenstockError):
            return error
    return group.exceptions[0]
