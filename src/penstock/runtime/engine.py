"""The engine: one open database with its scheduler, readers and clock. Everything else hangs on it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any, NoReturn, ParamSpec, TypeVar

from penstock.contracts.audit import Audit
from penstock.contracts.effects import Bindable, OnceKey
from penstock.contracts.ledger import Death
from penstock.contracts.presence import Bell, Presence
from penstock.contracts.store import Reader, Rows, Store, Writer
from penstock.model.allowance import Allowance
from penstock.model.errors import StorageFull
from penstock.model.ids import IdSource, as_text
from penstock.model.limits import Limits
from penstock.model.sweep import SweepHold
from penstock.runtime import lanes
from penstock.runtime.clock import BELIEVED_MICROS, JUMP_LEAST, HostClock, Jump
from penstock.runtime.events import (
    ClockJumped,
    ClockWasAhead,
    Events,
    MessageDied,
    RowsReturned,
    StorageRanFull,
    StoreFailed,
    WakeUpsFailed,
)
from penstock.runtime.gate import Gate
from penstock.runtime.history import HistoryLog
from penstock.runtime.meterbook import MeterBook
from penstock.runtime.scheduler import Scheduler
from penstock.runtime.surroundings import Surroundings

READERS = 4  # queries that run at the same time; SQLite gains nothing from more on a small machine
FULL_AGAIN_SECONDS = 600.0  # a disk that stays full is reported at most this often
SWITCH_SECONDS = 0.0005  # beside busy Python code a commit would otherwise wait 5 ms for each turn of the interpreter
P = ParamSpec("P")
T = TypeVar("T")


class Engine:
    def __init__(
        self,
        app: object,
        store: Store,
        events: Events,
        limits: Limits,
        surroundings: Surroundings,
        *,
        lease_longest: float,
        service: str = "",
        history: float = 0.0,
    ) -> None:
        """`history` is the share of chains that are recorded, under the name of `service`."""
        self.app = app
        self.die: Callable[[str], NoReturn] | None = None  # in a process that is only a worker
        self._recorded = (service, history)
        self.store = store
        self.events = events
        self.limits = limits
        self.surroundings = surroundings
        self.clock = surroundings.clock
        self.faults = surroundings.faults
        self.ids = IdSource(self.clock.now, surroundings.random)
        # The clock may have jumped just before this process began: no other process's lease is cut to less than half.
        self._hold = SweepHold(lease_longest, until=self.clock.monotonic() + lease_longest / 2)
        # An outside client knows when its lease ends, and no process stands behind it: the lease ends at that time.
        self._hold_outside = SweepHold(self.limits.pull_lease_seconds_max)
        self.writer: Writer
        self.presence: Presence
        self.scheduler: Scheduler
        self.gate: Gate
        self.meter: MeterBook
        self.history: HistoryLog
        self._bell: Bell | None = None  # without one, other processes notice a send within a second
        self._writing: lanes.Lane
        self._readers: list[_ReaderLane] = []
        self._full_logged_at = -FULL_AGAIN_SECONDS
        self.when_rung: list[Callable[[], None]] = []  # called when another process rings
        self.is_open = False

    async def open(self) -> None:
        if not self.surroundings.in_place:
            sys.setswitchinterval(SWITCH_SECONDS)
        async with AsyncExitStack() as opened:
            await self._open(opened)
            opened.pop_all()
        self.is_open = True

    async def _open(self, opened: AsyncExitStack) -> None:
        """Whatever fails, nothing of what is in `opened` stays open."""
        self._writing = self.surroundings.lane("writer")
        opened.callback(self._writing.close)
        self.writer = await self.in_writer(self.store.open_writer, now=self.clock.now())
        opened.push_async_callback(self.in_writer, self.writer.close)
        await self.follow_server()
        me = self.writer.workers.me
        self.presence = self.store.presence(me)
        opened.callback(self.presence.vanish)
        try:
            self._bell = self.surroundings.bell(self.store, me)
            opened.callback(self._bell.close)
        except OSError as error:
            self.events.emit(WakeUpsFailed(str(error)))
        self.gate = Gate()
        loop = asyncio.get_running_loop()
        self.presence.when_cut_off(lambda away: loop.call_soon_threadsafe(self.gate.set_store_lost, away))
        self.meter = MeterBook(self)
        self.history = HistoryLog(
            self.store.open_history,
            self.surroundings.lane,
            self.clock,
            self.events,
            *self._recorded,
            keep_seconds=self.limits.history_seconds,
        )
        self.scheduler = Scheduler(
            self._writing,
            self.writer.ledger,
            self.clock,
            self.faults,
            gate=self.gate,
            at_once=self.writer.without_waiting,
            may_sweep=self.may_sweep,
            ring=self.ring,
            on_cost=self.meter.add,
            on_death=self.tell_death,
            on_trouble=self._in_trouble,
        )
        self._readers = [
            _ReaderLane(self.surroundings, self.store) for _ in range(1 if self.surroundings.in_place else READERS)
        ]
        if isinstance(self.clock, HostClock):
            await self._join_time(self.clock)
            self.clock.on_jump = self._jumped

    async def _join_time(self, clock: HostClock) -> None:
        """If the wall clock was set back, continue from the recorded time, as running processes do."""
        now = clock.now()
        behind = await self.in_writer(self.writer.workers.behind, now=now)
        if behind <= BELIEVED_MICROS:
            clock.not_before(now + behind)
            if behind > JUMP_LEAST:
                self.events.emit(ClockJumped(-behind / 1_000_000))
        else:
            self.events.emit(ClockWasAhead(behind / 1_000_000))

    async def close(self) -> None:
        """Commit what is pending, release all claims, and keep nothing of this process but its counts."""
        if not self.is_open:
            return
        self.is_open = False
        self.scheduler.stop()
        await self.meter.flush()
        await self.scheduler.drained()
        await self.history.close()
        sound = self.scheduler.broken is None
        self.scheduler.close()
        if self._bell is not None:
            self._bell.close()
        try:
            for reader in self._readers:
                await reader.close()
            if sound:
                await self.in_writer(self.writer.workers.retire, self.writer.workers.me, now=self.clock.now())
        finally:
            # Last: closing the last connection copies the log back.
            await self.in_writer(self.writer.close)
            if sound:
                self.presence.leave()
            else:
                self.presence.vanish()  # its claims could not be released: the next process finds them
            self._writing.close()

    # -- the lanes ------------------------------------------------------------------------------------

    async def in_writer(self, work: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
        """Call `work` with these arguments in the writer's thread, between two groups."""
        return await lanes.run(self._writing, partial(work, *given, **named))

    async def operate(self, work: Callable[[], Any], audit: Audit | None, queues: set[str] | None = None) -> Any:
        """Run an operator's change in the writer's thread, with its audit. Where it changed something, the queues that it
        returns, or these, are looked at in every process."""
        changed = await self.in_writer(self.writer.audited, audit, work)
        if changed or changed is None:
            self.wake(set(changed or ()) if queues is None else queues)
        return changed

    def submit(self, work: Callable[[], Any], answer: lanes.Answer) -> None:
        self._writing.submit(work, answer)

    async def read(
        self, task: str, sql: str, bound: dict[str, Bindable], *, rows_max: int, seconds_max: float | None = None
    ) -> Rows:
        lane = min(self._readers, key=_ReaderLane.waiting)
        rows: Rows = await lane.run(lambda each: each.read(sql, bound, rows_max=rows_max, seconds_max=seconds_max))
        self.meter.add(task, rows.measure)
        return rows

    async def ask(
        self, task: str, queries: Sequence[tuple[str, dict[str, Bindable]]], allowance: Allowance
    ) -> list[Rows]:
        """Run an HTTP client's queries on a connection that cannot write, in one snapshot."""
        lane = min(self._readers, key=_ReaderLane.waiting)
        found: list[Rows] = await lane.run(lambda each: each.ask(queries, allowance))
        for rows in found:
            self.meter.add(task, rows.measure)
        return found

    async def find_once(self, once: OnceKey) -> bytes | None:
        return await self.in_writer(self.writer.ledger.find_once, once)

    # -- being woken -----------------------------------------------------------------------------------

    def listen(self) -> None:
        try:
            if self._bell is not None:
                self._bell.listen(self._heard)
        except OSError as error:
            self.events.emit(WakeUpsFailed(str(error)))

    def _heard(self, queues: set[str]) -> None:
        self.scheduler.look(queues)
        for callback in self.when_rung:
            callback()

    def wake(self, queues: set[str]) -> None:
        """There may be work in these queues: look here, and tell the other processes."""
        self.scheduler.look(queues)
        self.ring(queues)

    def ring(self, queues: Collection[str]) -> None:
        if self._bell is not None:
            self._bell.ring(queues)

    async def return_departed(self) -> None:
        """Releases at once what dead neighbours held."""
        for departed in await self.in_writer(self.presence.departed):
            worker, started, blamed = departed
            return_rows = self.writer.workers.return_rows
            returned = await self.in_writer(return_rows, worker, started=started, charged=blamed, now=self.clock.now())
            for death in returned.deaths:
                self.tell_death(death)
            await self.in_writer(self.presence.forget, worker)
            counts = (returned.released, returned.suspected, returned.charged, returned.dead)
            if any(counts):
                self.events.emit(RowsReturned(worker, *counts))
                self.wake(set())

    def tell_death(self, death: Death) -> None:
        ids = {"id": as_text(death.id), "correlation_id": as_text(death.correlation_id)}
        self.events.emit(MessageDied(**death._asdict() | ids))

    async def follow_server(self) -> None:
        """Where the database keeps its own time, this process goes by it."""
        if isinstance(self.clock, HostClock) and not self.surroundings.in_place:
            before = self.clock.now()
            there = await self.in_writer(self.writer.upkeep.server_time)
            if there is not None:
                self.clock.lean(there - (before + self.clock.now()) // 2)

    # -- trouble ---------------------------------------------------------------------------------------

    def may_sweep(self) -> bool:
        return self._hold.allows(self.clock.monotonic())

    def may_sweep_outside(self) -> bool:
        return self._hold_outside.allows(self.clock.monotonic())

    def _jumped(self, jump: Jump) -> None:
        self._hold = self._hold.jumped(jump.by_seconds, at=self.clock.monotonic())
        self._hold_outside = self._hold_outside.jumped(jump.by_seconds, at=self.clock.monotonic())
        self.events.emit(ClockJumped(jump.by_seconds))

    def _in_trouble(self, trouble: Exception) -> None:
        if isinstance(trouble, StorageFull):
            if self.clock.monotonic() - self._full_logged_at >= FULL_AGAIN_SECONDS:
                self.events.emit(StorageRanFull(self.store.location))
            self._full_logged_at = self.clock.monotonic()
        else:
            self.events.emit(StoreFailed(self.store.location, str(trouble)))


class _ReaderLane:
    """A lane with its own read connection, opened when it is first needed."""

    def __init__(self, surroundings: Surroundings, store: Store) -> None:
        self._surroundings = surroundings
        self._store = store
        self._lane: lanes.Lane | None = None
        self._reader: Reader | None = None
        self._waiting = 0

    def waiting(self) -> int:
        return self._waiting

    async def run(self, work: Callable[[Reader], Any]) -> Any:
        if self._lane is None:
            self._lane = self._surroundings.lane("reader")
        self._waiting += 1
        try:
            return await lanes.run(self._lane, lambda: work(self._opened()))
        finally:
            self._waiting -= 1

    def _opened(self) -> Reader:
        if self._reader is None:
            self._reader = self._store.open_reader()
        return self._reader

    async def close(self) -> None:
        if self._lane is not None:
            if self._reader is not None:
                await lanes.run(self._lane, self._reader.close)
            self._lane.close()
