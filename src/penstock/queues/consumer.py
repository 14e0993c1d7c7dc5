"""The consumer of one queue: asks for messages as far as it has room, and runs what it is given in slots."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.contracts.ledger import ClaimRequest
from penstock.model.errors import LeaseLost, StoreError
from penstock.model.message import Delivery
from penstock.model.queue import PARALLEL_AUTOMATIC
from penstock.queues.batch import BatchRunner
from penstock.queues.queue import Queue
from penstock.queues.runner import Runner, Settler
from penstock.runtime.slots import Slot, SlotPool

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.worker import Worker

CLAIM_MAX = 500  # rows of one claim: larger ones gain nothing and hold the writer up
AHEAD_MAX = 2 * CLAIM_MAX  # claimed beyond the free slots when handlers are quick: one claim to run, one under way
AHEAD_SECONDS = 0.1  # and never more than this much work, so that neighbours get their share
UNSTARTED_SECONDS = 20.0  # what could not begin within this time of its claim goes back: less than the slack of a lease
YIELD_SECONDS = 0.002  # handlers that never wait still let the loop breathe this often


class Consumer:
    def __init__(self, worker: Worker, engine: Engine, queue: Queue[Any], *, patient: bool = True) -> None:
        """Without patience no batch is waited for: a run that ends once nothing is due must leave nothing half full."""
        settings = queue.settings
        self._worker = worker
        self._engine = engine
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, Delivery]] = deque()  # since when
        self._release_timer: asyncio.TimerHandle | None = None
        self._tuned: int | None = None
        self._slots = SlotPool(worker.slots, worker.cells, self._least_parallel(), settings.timeout_seconds)
        self._settler = Settler(worker, engine, queue.name, settings.retry)
        self._runner = Runner(worker, engine, queue, self._slots, self._settler)
        self._batches: BatchRunner | None = None
        if queue.batches is not None:
            self._batches = BatchRunner(worker, engine, queue, self._slots, self._settler, self._runner)
        self._rows = settings.batch if self._batches is not None else 1  # that one slot runs at once
        self._ahead = 0
        self._asked = False  # the next claim is asked for once, at half of what this one brought
        self._since = 0.0
        self.queue = queue.name
        self.lease_micros = int(settings.lease_seconds * 1_000_000)
        self._wait_micros = int(settings.batch_wait_seconds * 1_000_000) if patient and settings.batch > 1 else 0
        engine.gate.on_reopen.append(self._reopened)
        engine.gate.on_store_lost.append(self.release_waiting)

    # -- called by the scheduler -------------------------------------------------------------------------

    def claim_request(self) -> ClaimRequest | None:
        room = self.room()
        if room <= 0:
            return None
        settings = self._settings
        return ClaimRequest(self.queue, room, self.lease_micros, settings.batch, self._wait_micros, settings.alone)

    def room(self) -> int:
        """Asks again once half of what it may hold is gone, so that claims stay large and never run dry."""
        if self._worker.stopping or self._engine.gate.closed:
            return 0
        free = min((self._slots.parallel - self._slots.busy) * self._rows, self._slots.left())
        waiting = len(self._waiting) - self._slots.starting * self._rows - free  # for whom no slot is free
        if waiting > self._ahead // 2:
            return 0
        room = max(0, min(self._ahead - waiting, max(CLAIM_MAX, self._rows)))
        # Whole batches, unless the places of all queues are so few that this one would never run.
        return room if room < self._rows and not self._slots.busy else room - room % self._rows

    def tuned(self, parallel: int | None) -> None:
        if parallel != self._tuned:
            self._tuned = parallel
            self._slots.parallel = self._least_parallel()
            self._go_on()

    def take(self, deliveries: list[Delivery], *, full: bool, at: int) -> None:
        self._engine.faults.at("claim.delivered")
        since = max(0, self._engine.clock.now() - at) / 1_000_000
        if self._worker.stopping or since > UNSTARTED_SECONDS:  # or the process stood still since it asked
            for delivery in deliveries:
                self._settler.release(delivery)
            return
        self._release_old()
        self._adapt(full, len(deliveries))
        self._asked = False
        claimed_at = self._loop.time() - since
        for delivery in deliveries:
            if delivery.crashes:
                self._engine.gate.expect()
                self._worker.spawn(self._run_alone(delivery, claimed_at))
            else:
                self._waiting.append((claimed_at, delivery))
        self._go_on()
        if self._release_timer is None:
            self._release_in_time()

    def _adapt(self, full: bool, claimed: int) -> None:
        """Claims grow while they come back full, up to what the handlers were seen to finish in a moment. So does automatic
        concurrency, up to its bound; without a backlog both start again."""
        now = self._loop.time()
        rate = self._runner.ended / max(now - self._since, 0.0001)
        self._runner.ended, self._since = 0, now
        slots = self._slots
        if full:
            wished = max(slots.parallel * self._rows, self._ahead * 2)
            # Where starts are paced nothing is held ready: after a pause it would start on top of what the pace allows.
            paced = self._settings.rate is not None
            self._ahead = 0 if paced else min(wished, int(rate * AHEAD_SECONDS), AHEAD_MAX)
            if self._is_automatic():
                slots.parallel = min(slots.parallel * 2, self._settings.parallel_max)
        else:
            self._ahead = 0
            if self._is_automatic():
                # What is claimed and has not begun was claimed for slots that were free: they stay.
                wanted = slots.busy - (len(self._waiting) + claimed) // -self._rows
                slots.parallel = min(slots.parallel, max(self._least_parallel(), wanted))

    def _is_automatic(self) -> bool:
        return self._tuned is None and self._settings.parallel is None

    def _least_parallel(self) -> int:
        fixed = self._tuned or self._settings.parallel
        return fixed or min(PARALLEL_AUTOMATIC, self._settings.parallel_max)

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
        self._engine.scheduler.freed(self.queue)

    async def _serve(self, slot: Slot) -> None:
        self._slots.started()
        waiting, gate, time = self._waiting, self._engine.gate, self._loop.time
        runner, batches, slots = self._runner, self._batches, self._slots
        breathe_at = time() + YIELD_SECONDS
        task = slot.task
        assert task is not None
        try:
            # The last of too many slots ends: an operator may have lowered their number. If user code cancelled this task
            # and returned, the rest runs in another.
            while (
                self._release_old()
                and not (gate.closed or self._worker.stopping or task.cancelling())
                and slots.busy <= slots.parallel
            ):
                if batches is not None:
                    # No more than have a place in the list of what runs: who is not in it is never blamed for a death.
                    most = min(self._rows, len(waiting), max(slots.left(), 1))
                    deliveries = [waiting.popleft()[1] for _ in range(most)]
                    self._go_on()
                    await batches.run(slot, deliveries)
                else:
                    _, delivery = waiting.popleft()
                    self._go_on()
                    if (rest := runner.begin(slot, delivery)) is not None:
                        await runner.finish(slot, rest)
                if not self._asked and len(waiting) <= self._ahead // 2:
                    self._asked = True
                    self._engine.scheduler.freed(self.queue)
                if time() >= breathe_at:
                    await asyncio.sleep(0)
                    breathe_at = time() + YIELD_SECONDS
        finally:
            self._slots.give(slot)
            if task.cancelling() and not self._worker.stopping:
                self._go_on()
            self._engine.scheduler.freed(self.queue)

    async def _run_alone(self, delivery: Delivery, claimed_at: float) -> None:
        """Others that run may take longer than its lease: it is leased anew while it waits for its turn."""
        gate, time = self._engine.gate, self._loop.time
        turn = asyncio.ensure_future(gate.turn())
        held_at, cuts = claimed_at, gate.losses
        try:
            while True:
                its_turn, _ = await asyncio.wait({turn}, timeout=held_at + UNSTARTED_SECONDS / 2 - time())
                if its_turn and gate.losses == cuts and time() - held_at <= UNSTARTED_SECONDS:
                    break
                held_at, cuts = time(), gate.losses
                await self._settler.hold(delivery, self._settings.lease_seconds)
            await self._run_now(delivery)
        except (LeaseLost, StoreError) as error:
            self._settler.refused(delivery, self.queue, error)
        finally:
            turn.cancel()
            gate.leave(had_turn=turn.done() and not turn.cancelled())

    async def _run_now(self, delivery: Delivery) -> None:
        slot = None if self._worker.stopping else self._slots.take()
        if slot is None:
            self._settler.release(delivery)
            return
        slot.task = asyncio.current_task()
        self._slots.started()
        try:
            if self._batches is not None:
                await self._batches.run(slot, [delivery])
            elif (rest := self._runner.begin(slot, delivery)) is not None:
                await self._runner.finish(slot, rest)
        finally:
            self._slots.give(slot)

    # -- releasing --------------------------------------------------------------------------------------

    def release_waiting(self) -> int:
        count = len(self._waiting)
        while self._waiting:
            self._settler.release(self._waiting.popleft()[1])
        return count

    def holds(self) -> bool:
        """Whether it holds claims that are neither settled nor released."""
        return bool(self._waiting) or self._slots.busy > 0

    def cancel_running(self) -> None:
        self._slots.cancel_all()

    def close(self) -> None:
        self._slots.close()
        if self._release_timer is not None:
            self._release_timer.cancel()

    def _release_old(self) -> bool:
        """Nothing begins with an old lease: not behind handlers that take long, nor in a process that stood still. Whether
        anything is left that may begin."""
        while self._waiting and self._waiting[0][0] + UNSTARTED_SECONDS <= self._loop.time():
            self._settler.release(self._waiting.popleft()[1])
        return bool(self._waiting)

    def _release_in_time(self) -> None:
        self._release_timer = None
        if self._release_old():
            self._release_timer = self._loop.call_at(self._waiting[0][0] + UNSTARTED_SECONDS, self._release_in_time)
