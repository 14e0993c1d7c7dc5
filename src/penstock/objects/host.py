"""The host: objects that live in this process, one event at a time, each event a unit of work under the object's fence."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

from penstock.contracts.audit import Audit
from penstock.contracts.effects import Once, OnceKey
from penstock.contracts.objects import ObjectRow, SaveObject
from penstock.contracts.timers import ALARM, ClearTimer, SetTimer
from penstock.model.errors import LeaseLost, PenstockError, Reentrant
from penstock.model.usage import Measure
from penstock.objects.event import EventUnit, event_unit
from penstock.objects.object import Object
from penstock.objects.repeats import Repeats, answer, encoded
from penstock.runtime.audit import record
from penstock.runtime.engine import Engine
from penstock.runtime.slots import contained
from penstock.runtime.unit import AwaitedUnit, current_unit
from penstock.runtime.worker import Worker

IDLE_SECONDS = 60.0  # in memory without an event; then it is let go, and costs nothing
ELSEWHERE_SECONDS = 30.0  # what a caller waits for an object that lives in another process
ASK_SECONDS = 0.05

_inside: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("penstock_objects", default=())


class Elsewhere(PenstockError):
    """The object lives in another process that did not let it go in time. Try again."""


class Moved(PenstockError):
    """The object was taken over by another process, and nothing of this event was saved. Try again."""


class Resident:
    """One object in memory."""

    def __init__(self, host: Host, instance: Object, epoch: int, state: bytes) -> None:
        self._host = host
        self.instance = instance
        self.epoch = epoch
        self.state = state  # as it was saved last
        self.lock = asyncio.Lock()
        self.used_at = host.time()
        self.events = 0  # under way
        self.at_work = 0  # of those, the ones whose time is the object's
        self.worked_since = 0.0
        self.seconds = 0.0  # worked and not metered yet
        self.saves = 0  # not metered yet
        self.asked = False  # another process wants it
        self.on_asked: Callable[[], None] | None = None

    @property
    def key(self) -> tuple[str, str]:
        return type(self.instance).__name__, self.instance.name

    @property
    def timer(self) -> str:
        return "/".join(self.key)

    # -- what the object asks of it ----------------------------------------------------------------------

    def now(self) -> int:
        return self._host.engine.clock.now()

    def set_alarm(self, due: int) -> None:
        class_name, _ = self.key
        event_unit().effects.append(SetTimer(ALARM, self.timer, due, queue_of(class_name), "object.alarm"))

    def clear_alarm(self) -> None:
        event_unit().effects.append(ClearTimer(ALARM, self.timer))

    async def next_alarm(self) -> int | None:
        """What this event has set counts already."""
        for change in reversed(event_unit().effects):
            if isinstance(change, SetTimer | ClearTimer) and change.name == self.timer:
                return change.due if isinstance(change, SetTimer) else None
        row = await self._host.look(*self.key)
        return None if row is None else row.alarm

    @asynccontextmanager
    async def released(self, *, away: bool = False) -> AsyncIterator[None]:
        """Others may run meanwhile. What this event has changed so far is saved first, so that they see it. Who is `away`
        does the app's work, not the object's: that time is not the object's."""
        await self._host.save_midway(self)
        self.lock.release()
        if away:
            self.leave()
        try:
            yield
        finally:
            if away:
                self.come()
            await self._enter_again()

    def come(self) -> None:
        """Events beside each other share their time: it is counted while there is any."""
        if not self.at_work:
            self.worked_since = self._host.time()
        self.at_work += 1

    def leave(self) -> None:
        now = self._host.time()
        self.seconds += now - self.worked_since
        self.worked_since = now
        self.at_work -= 1

    async def _enter_again(self) -> None:
        """Acquire the lock again, also if the caller is cancelled while it waits: it releases the lock when it leaves the
        event, and must not release another caller's."""
        cancelled: asyncio.CancelledError | None = None
        while True:
            try:
                await self.lock.acquire()
                break
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled

    async def save(self) -> None:
        """Saves the state as it is, in the middle of an event."""
        await self._host.save_midway(self)

    async def save_between(self) -> None:
        """Saves the state while the event is released, when no other event is half done."""
        async with self.lock:
            await self._host.save_midway(self)


class Arriving:
    """Those who wait for one object to come into memory: the first fetches it, the others find it there."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class Host:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._loop = asyncio.get_running_loop()
        self._worker: Worker | None = None
        self._has_owned = False  # an object that left memory is still ours until another process asks
        self._letting_go = False
        self._residents: dict[tuple[str, str], Resident] = {}
        self._arriving: dict[tuple[str, str], Arriving] = {}
        self._evicting: asyncio.TimerHandle | None = None
        self._repeats = Repeats(engine)
        self.time = self._loop.time

    def serve(self, worker: Worker) -> None:
        """While this worker runs, objects that other processes ask for are let go when they have nothing to do."""
        self._worker = worker
        self.engine.when_rung.append(self._rung)
        self.engine.gate.on_store_lost.append(self.evict_all)

    def _rung(self) -> None:
        if self._has_owned and self._worker is not None and not self._worker.stopping and not self._letting_go:
            self._letting_go = True
            self._worker.spawn(self.let_go_wanted())

    # -- calls ------------------------------------------------------------------------------------------

    async def call(
        self,
        cls: type[Object],
        name: str,
        method: str,
        arguments: tuple[Any, ...] = (),
        named: dict[str, Any] | None = None,
        *,
        hint: str | None = None,
        patient: bool = True,
        audit: Audit | None = None,
    ) -> Any:
        """Runs one event of an object in a unit of its own. A repeat by the same message gives the stored answer."""
        key = (cls.__name__, name)
        inside = _inside.get()
        if key in inside:
            chain = " -> ".join("/".join(each) for each in (*inside, key))
            raise Reentrant(
                f"{chain}: this chain of calls returns to an object that is already part of it. Use `tell`."
            )
        named = named or {}
        once = self._repeats.key_of(key, method, arguments, named)
        if once is not None:
            stored = await self.engine.find_once(once)
            if stored is not None:
                return answer(stored, getattr(cls, method))
        while True:
            resident = await self._arrived(cls, name, hint, ELSEWHERE_SECONDS if patient else 0.0)
            resident.events += 1
            resident.come()
            token = _inside.set((*inside, key))
            try:
                async with resident.lock:
                    if self.engine.gate.store_lost:
                        await self.engine.in_writer(lambda: None)  # which it can do once the store is back
                    # After the wait the object may have moved: what is in memory here is old then.
                    if self._residents.get(key) is resident:
                        return await self._event(resident, method, arguments, named, once, audit)
            finally:
                _inside.reset(token)
                resident.events -= 1
                resident.leave()
                self._meter(resident)
                self._watch_idle()
                if not resident.events and (self._worker is None or resident.asked):
                    # A process that does not run hears no request for an object: it keeps none.
                    await self._let_go(resident)

    def _meter(self, resident: Resident) -> None:
        """An event has ended. An object is billed while it is at work."""
        resident.used_at = self.time()
        used = Measure("penstock:object_requests", 1, 0, resident.saves, 0, 0, resident.seconds)
        resident.saves, resident.seconds = 0, 0.0
        self.engine.meter.add(queue_of(resident.key[0]), used)

    async def _event(
        self,
        resident: Resident,
        method: str,
        arguments: tuple[Any, ...],
        named: dict[str, Any],
        once: OnceKey | None,
        audit: Audit | None,
    ) -> Any:
        outer = current_unit.get()
        unit = EventUnit(self.engine, None, f"object.{resident.key[0]}", None)
        unit.origin = None if outer is None else outer.origin
        record(unit, audit)
        unit.once = once
        before = current_unit.set(unit)
        try:
            result = await contained(getattr(resident.instance, method)(*arguments, **named))
            saved = resident.instance._saved()
            if once is not None:
                unit.once_result = encoded(result, method)
        except BaseException:
            resident.instance._load(resident.state)  # what it changed did not happen
            raise
        finally:
            current_unit.reset(before)
            unit.closed = True
        changed = None if saved == resident.state else saved
        if changed is not None or unit.effects or once is not None:
            unit.fences.append(SaveObject(*resident.key, resident.epoch, changed))
            if once is not None:
                unit.fences.append(Once(once, unit.once_result))
            await self._commit(resident, unit, saved)
            if unit.repeated and once is not None:
                return answer(await self.engine.find_once(once) or b"null", getattr(resident.instance, method))
        return result

    async def _commit(self, resident: Resident, unit: AwaitedUnit, saved: bytes) -> None:
        """Make memory hold what the database holds, also if the waiting caller was cancelled meanwhile."""
        self.engine.scheduler.put(unit)
        try:
            await unit.settled()
        except LeaseLost as error:
            self._forget(resident)
            raise Moved(f"{resident.timer} was taken over by another process, and nothing was saved.") from error
        finally:
            if unit.committed:
                resident.saves += saved != resident.state
                resident.state = saved
            else:
                resident.instance._load(resident.state)

    async def save_midway(self, resident: Resident) -> None:
        """Saves what an event has changed so far, before it lets others in."""
        saved = resident.instance._saved()
        if saved == resident.state:
            return
        midway = AwaitedUnit(self.engine, None, f"object.{resident.key[0]}", None)
        midway.fences.append(SaveObject(*resident.key, resident.epoch, saved))
        midway.closed = True
        await self._commit(resident, midway, saved)

    # -- coming and going ---------------------------------------------------------------------------------

    async def _arrived(self, cls: type[Object], name: str, hint: str | None, patience: float) -> Resident:
        key = (cls.__name__, name)
        resident = self._residents.get(key)
        if resident is not None:
            return resident
        arriving = self._arriving.setdefault(key, Arriving())
        arriving.waiting += 1
        try:
            async with arriving.lock:
                resident = self._residents.get(key)
                if resident is None:
                    resident = await self._acquire(cls, name, hint, patience)
                    self._residents[key] = resident
        finally:
            arriving.waiting -= 1
            if not arriving.waiting:
                del self._arriving[key]
        return resident

    async def _acquire(self, cls: type[Object], name: str, hint: str | None, patience: float) -> Resident:
        objects = self.engine.writer.objects
        until = self.time() + patience
        while True:
            now = self.engine.clock.now()
            acquired = await self.engine.in_writer(objects.acquire, cls.__name__, name, fresh=b"{}", hint=hint, now=now)
            if acquired.owner is None:
                self._has_owned = True
                break
            self.engine.ring(())
            if self.time() >= until:
                raise Elsewhere(
                    f"{cls.__name__}/{name} lives in worker {acquired.owner}, which did not let it go within "
                    f"{patience:.0f} s. Try again."
                )
            await asyncio.sleep(ASK_SECONDS)
        instance = cls.__new__(cls)
        resident = Resident(self, instance, acquired.epoch, acquired.state)
        instance.name = name
        instance._residence = resident
        instance._load(acquired.state)
        instance.__init__()  # type: ignore[misc]
        await instance.loaded()
        return resident

    def _forget(self, resident: Resident) -> None:
        if self._residents.get(resident.key) is resident:
            del self._residents[resident.key]

    async def let_go_wanted(self) -> None:
        """Others ask for objects that live here: those with nothing to do are let go."""
        try:
            for class_name, name in await self.engine.in_writer(self.engine.writer.objects.wanted):
                resident = self._residents.get((class_name, name))
                if resident is not None and not resident.events:
                    await self._let_go(resident)
                elif resident is not None:
                    resident.asked = True  # let go after its event; a long one is notified, and may end
                    if resident.on_asked is not None:
                        resident.on_asked()
                elif (class_name, name) not in self._arriving:
                    await self.engine.in_writer(self.engine.writer.objects.disown, class_name, name)
                    self.engine.ring(())
        finally:
            self._letting_go = False

    async def _let_go(self, resident: Resident) -> None:
        self._forget(resident)
        await self.engine.in_writer(self.engine.writer.objects.release, *resident.key, resident.epoch)
        self.engine.ring(())

    def _watch_idle(self) -> None:
        if self._evicting is None:
            self._evicting = self._loop.call_later(IDLE_SECONDS, self._evict)

    def _evict(self) -> None:
        """Idle objects leave memory; they stay ours until another process asks, which costs nothing."""
        self._evicting = None
        now = self.time()
        for resident in list(self._residents.values()):
            if not resident.events and now - resident.used_at >= IDLE_SECONDS:
                self._forget(resident)
        if self._residents:
            self._watch_idle()

    def evict_all(self) -> None:
        for resident in list(self._residents.values()):
            if not resident.events:
                self._forget(resident)

    def close(self) -> None:
        if self._evicting is not None:
            self._evicting.cancel()
        self._residents.clear()

    async def look(self, class_name: str, name: str) -> ObjectRow | None:
        return await self.engine.in_writer(self.engine.writer.objects.look, class_name, name)


def queue_of(class_name: str) -> str:
    return f"object.{class_name}"
