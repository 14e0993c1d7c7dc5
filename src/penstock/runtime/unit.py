"""The unit of work: what a handler writes and sends is collected here and committed with its settlement."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ClassVar

import msgspec

from penstock.contracts.ledger import Also, Call, LetterAction, Line, OnceKey, SealedUnit
from penstock.contracts.runs import RunChange
from penstock.model.errors import BadApp, BadMessage, NoUnit, PenstockError, UnitClosed, UnitTooLarge
from penstock.model.ids import derived
from penstock.model.message import Delivery, NewMessage
from penstock.runtime.engine import Engine

current_unit: ContextVar[Unit | None] = ContextVar("penstock_unit", default=None)


class Unit(SealedUnit):
    """Open while its handler runs. `key` makes the ids of what it sends the same on every attempt."""

    __slots__ = ("_bytes", "asked", "closed", "engine", "key", "origin", "sent")
    refusal: ClassVar[type[PenstockError]] = UnitClosed  # what whoever joins it hears once it is closed

    def __init__(self, engine: Engine, delivery: Delivery | None, task: str, key: str | None) -> None:
        # Spelt out instead of calling up: one of these is made for every message.
        self.delivery = delivery
        self.task = task
        self.also = None
        self.settlement = None
        self.calls = []
        self.sends = []
        self.runs = None
        self.stops = False
        self.once = None
        self.once_result = b"null"
        self.committed = False
        self.repeated = False
        self.engine = engine
        self.origin = delivery  # what everything it sends follows from
        self.key = key
        self.closed = False
        self.sent = 0
        self.asked = 0  # calls to objects: each has its number, so that a repeat finds its answer
        self._bytes = 0

    def discard(self) -> None:
        """Drop what user code wrote, sent, started and asked of dead letters: it failed. Fences and notes stay."""
        self.calls = []
        self.sends = []
        self.runs = None
        if self.also is not None:
            self.also.letters = []

    def add(self, call: Call, size_bytes: int) -> None:
        self._grow(size_bytes)
        most = self.engine.limits.unit_calls_max
        if len(self.calls) >= most:
            raise UnitTooLarge(
                f"A unit of work has at most {most:,} calls (`unit_calls_max`). Use `db.write_many`, which is one call, or "
                "commit earlier with `async with app.unit():`.",
                calls=len(self.calls) + 1,
            )
        self.calls.append(call)

    def send(self, message: NewMessage) -> None:
        self._grow(len(message.body))
        self.sends.append(message)

    def change_run(self, change: RunChange, size_bytes: int) -> None:
        self._grow(size_bytes)
        if self.runs is None:
            self.runs = []
        self.runs.append(change)

    @contextmanager
    def sending_all(self) -> Iterator[Callable[[], list[NewMessage]]]:
        """What is sent inside stays only if all of it can be; calling what it gives tells what that is so far."""
        before = len(self.sends)
        try:
            yield lambda: self.sends[before:]
        except BaseException:
            self._bytes -= sum(len(message.body) for message in self.sends[before:])
            del self.sends[before:]
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

    def next_id(self, type_name: str) -> bytes:
        """A re-run of the same delivery gives the same ids in the same order; elsewhere ids are fresh."""
        self.sent += 1
        if self.delivery is None or self.key is None:
            return self.engine.ids.new()
        consumed = self.delivery
        return derived(consumed.id, consumed.handler, self.key, str(consumed.rounds), type_name, str(self.sent))


class AwaitedUnit(Unit):
    """A unit that somebody waits for at its end: `async with app.unit()`."""

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
                self.outcome.exception()  # looked at, so that nobody is told it was forgotten
            raise


class UncancellableFuture(asyncio.Future[None]):
    """Who waits for it and is cancelled hears of that when it is done."""

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
            if outer.also is not None and outer.also.settles:
                # In the middle of a batch: it commits only while all of the batch is still ours.
                unit.also = Also()
                unit.also.settles = [(each, None) for each, _ in outer.also.settles]
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
        if unit.grows or unit.delivery is not None or unit.also is not None:
            unit.engine.committer.put(unit)
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
    if unit is not None and consumed is None and unit.also is not None and unit.also.settles:
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


def joined_letters(engine_of: object) -> list[LetterAction]:
    """What the current unit does with dead letters."""
    unit = require_unit(engine_of)
    if unit.also is None:
        unit.also = Also()
    return unit.also.letters


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
