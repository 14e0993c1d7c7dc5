"""The unit of work: what a handler writes and sends is collected here and committed with its settlement."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import msgspec

from penstock.contracts.effects import NO_ANSWER, Call, Effect, Line, Once, OnceKey, SealedUnit, Settle
from penstock.contracts.items import DropItems, NoteItem
from penstock.contracts.timers import TickNote
from penstock.model.errors import BadApp, BadMessage, NoUnit, PenstockError, UnitClosed, UnitTooLarge
from penstock.model.ids import derived
from penstock.model.message import Delivery, NewMessage
from penstock.model.outcome import DONE, Settlement
from penstock.runtime.engine import Engine

FAILURE_NOTES = (TickNote, NoteItem, DropItems)  # what is noted about work also where it failed

current_unit: ContextVar[Unit | None] = ContextVar("penstock_unit", default=None)


class Unit(SealedUnit):
    """Open while its handler runs. `key` makes the ids of what it sends the same on every attempt."""

    __slots__ = (
        "_bytes",
        "_calls",
        "asked",
        "closed",
        "delivery",
        "engine",
        "key",
        "once",
        "once_result",
        "origin",
        "sent",
        "settlement",
    )
    refusal: ClassVar[type[PenstockError]] = UnitClosed  # raised when a call joins it after it is closed

    def __init__(self, engine: Engine, delivery: Delivery | None, task: str, key: str | None) -> None:
        # Spelt out instead of calling up: one of these is made for every message.
        self.task = task
        self.fences = []
        self.effects = []
        self.answer = NO_ANSWER
        self.committed = False
        self.repeated = False
        self.engine = engine
        self.delivery = delivery
        self.origin = delivery  # what everything it sends follows from
        self.key = key
        self.settlement: Settlement | None = None  # of its delivery, once that is known
        self.once: OnceKey | None = None
        self.once_result = b"null"
        self.closed = False
        self.sent = 0
        self.asked = 0  # calls to objects: each has its number, so that a repeat finds its answer
        self._bytes = 0
        self._calls = 0

    def settle(self, settlement: Settlement) -> None:
        """Settle its delivery with it: it commits only while that is still ours."""
        self.settlement = settlement
        # Made through the tuple itself: one is made for every message.
        values = (self.delivery, settlement, 0 if settlement is DONE else int(self.grows))
        self.fences.append(tuple.__new__(Settle, values))

    def deliveries(self) -> list[Delivery]:
        """Return the deliveries that this unit works on: one, those of a batch, or none."""
        return [self.delivery] if self.delivery is not None else [each.delivery for each in self.settles()]

    def discard(self) -> None:
        """Drop what user code wrote, sent, started and set: it failed. Fences and the engine's notes stay."""
        self.effects = [effect for effect in self.effects if isinstance(effect, FAILURE_NOTES)]

    def add(self, effect: Effect, size_bytes: int = 0) -> None:
        self._grow(size_bytes)
        self.effects.append(effect)

    def send(self, message: NewMessage) -> None:
        self._grow(len(message.body))
        self.effects.append(message)

    def add_call(self, call: Call, size_bytes: int) -> None:
        self._grow(size_bytes)
        most = self.engine.limits.unit_calls_max
        if self._calls >= most:
            raise UnitTooLarge(
                f"A unit of work has at most {most:,} calls (`unit_calls_max`). Use `db.write_many`, which is one call, or "
                "commit earlier with `async with app.unit():`.",
                calls=self._calls + 1,
            )
        self._calls += 1
        self.effects.append(call)

    @contextmanager
    def sending_all(self) -> Iterator[Callable[[], list[NewMessage]]]:
        """What is sent inside stays only if all of it can be; calling what it gives tells what that is so far."""
        before = len(self.effects)

        def sent() -> list[NewMessage]:
            return [effect for effect in self.effects[before:] if isinstance(effect, NewMessage)]

        try:
            yield sent
        except BaseException:
            self._bytes -= sum(len(message.body) for message in sent())
            self.effects[before:] = [effect for effect in self.effects[before:] if not isinstance(effect, NewMessage)]
            raise

    def _grow(self, size_bytes: int) -> None:
        if self.closed:
            raise self.refusal
        self._bytes += size_bytes
        most = self.engine.limits.unit_bytes_max
        if self._bytes > most:
            raise UnitTooLarge(
                f"A unit of work has at most {most:,} bytes (`unit_bytes_max`); this call would make it {self._bytes:,}. "
                "Commit earlier with `async with app.unit():`.",
                bytes=self._bytes,
            )

    def next_id(self, type_name: str, now: int | None = None) -> bytes:
        """A re-run of the same delivery gives the same ids in the same order; elsewhere ids are fresh."""
        self.sent += 1
        if self.delivery is None or self.key is None:
            return self.engine.ids.new() if now is None else self.engine.ids.new_at(now)
        consumed = self.delivery
        return derived(consumed.id, consumed.handler, self.key, str(consumed.rounds), type_name, str(self.sent))


class AwaitedUnit(Unit):
    """A unit whose caller waits for the commit: `async with app.unit()`."""

    __slots__ = ("outcome",)

    def __init__(self, engine: Engine, delivery: Delivery | None, task: str, key: str | None) -> None:
        super().__init__(engine, delivery, task, key)
        self.outcome: asyncio.Future[None] = UncancellableFuture()

    def finished(self, error: Exception | None) -> None:
        if self.outcome.done():
            return
        if error is None:
            self.outcome.set_result(None)
        else:
            self.outcome.set_exception(error)

    async def settled(self) -> None:
        """Waits for the commit. A cancellation in between waits too: once sealed, a unit has one outcome."""
        try:
            await self.outcome
        except asyncio.CancelledError:
            if self.outcome.done():
                self.outcome.exception()  # read, so that asyncio reports no forgotten exception
            raise


class UncancellableFuture(asyncio.Future[None]):
    """A cancelled waiter receives its cancellation when the commit is done."""

    def cancel(self, msg: object = None) -> bool:
        return False


class OpenUnit:
    """A unit that commits at the end of its block, under the fence of the message that is being handled, if any."""

    __slots__ = ("_before", "_key", "_opened", "_unit")

    def __init__(self, opened: Callable[[], Awaitable[Engine]], key: str | None) -> None:
        self._opened = opened
        self._key = key

    async def __aenter__(self) -> AwaitedUnit:
        engine, key = await self._opened(), self._key
        outer = current_unit.get()
        if outer is not None and outer.engine is not engine:
            outer = None
        if outer is not None and outer.closed:
            raise outer.refusal
        delivery = None if outer is None else outer.delivery
        unit = AwaitedUnit(engine, delivery, "" if outer is None else outer.task, key)
        if outer is not None:
            unit.origin = outer.origin
            # In the middle of a batch it commits only while all of the batch is still ours.
            unit.fences = [Settle(each) for each in outer.deliveries()]
        if key is not None:
            unit.once = once_key(engine, key)
            unit.repeated = await engine.find_once(unit.once) is not None
        self._unit = unit
        self._before = current_unit.set(unit)
        return unit

    async def __aexit__(self, raised: type[BaseException] | None, *_: object) -> None:
        unit = self._unit
        current_unit.reset(self._before)
        unit.closed = True
        if raised is not None or unit.repeated:
            return
        if unit.once is not None:
            unit.fences.append(Once(unit.once, unit.once_result))
        if unit.effects or unit.fences:
            unit.engine.scheduler.put(unit)
            await unit.settled()


def open_unit(engine: Engine, key: str | None) -> OpenUnit:
    async def opened() -> Engine:
        return engine

    return OpenUnit(opened, key)


def once_key(engine: Engine, key: object) -> OnceKey:
    """Keys belong to the message that is being handled; outside one they belong to the database."""
    if not isinstance(key, str):
        raise BadMessage(f"key is {key!r}; give text.", key=key)
    unit = current_unit.get()
    if unit is not None and unit.engine is not engine:
        unit = None
    consumed = None if unit is None else unit.delivery
    if unit is not None and consumed is None and unit.deliveries():
        raise BadApp(f"The key {key!r} belongs to a message, and this is a batch. Use it inside `async with message:`.")
    return OnceKey(b"" if consumed is None else consumed.origin + consumed.handler.encode(), key)


def require_unit(engine_of: object) -> Unit:
    """The unit that a joining verb belongs to."""
    unit = current_unit.get()
    if unit is None:
        raise NoUnit
    if unit.closed:
        raise unit.refusal
    if unit.engine.app is not engine_of and unit.engine.app is not getattr(engine_of, "keeper", None):
        raise NoUnit(
            "The unit of work here belongs to another app. One commit covers one database: open `async with "
            "other_app.unit():` for the other one."
        )
    return unit


def caller(depth: int = 2) -> Line:
    frame = sys._getframe(depth)
    return frame.f_code, frame.f_lasti


async def run_once(engine: Engine, key: str, function: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
    scoped = once_key(engine, key)
    saved = await engine.find_once(scoped)
    if saved is not None:
        return msgspec.json.decode(saved)
    async with open_unit(engine, key) as unit:
        result = await function(*arguments)
        try:
            unit.once_result = msgspec.json.encode(result)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise BadMessage(
                f"The result of {getattr(function, '__qualname__', function)} cannot be saved under {key!r}: {error}. "
                "Return plain values.",
                key=key,
            ) from error
    # What comes back is what a repeat would give: the stored form, also when another saved it first.
    stored = await engine.find_once(scoped) if unit.repeated else unit.once_result
    return None if stored is None else msgspec.json.decode(stored)
