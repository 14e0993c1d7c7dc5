"""Order by key: a message waits until no earlier one of its key is left in its queue.

Each message of such a queue has a row with its key and its position. The row is written by the unit that sends the message,
and deleted by the unit that settles it. A message that became a dead letter, or was purged, is waited for no longer.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.contracts.runs import WakeMessage
from penstock.model.errors import BadMessage
from penstock.model.ids import as_text, from_text
from penstock.model.message import NewMessage
from penstock.model.outcome import Later
from penstock.model.times import MICROS
from penstock.queues.message import ACK
from penstock.runtime.unit import current_unit

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.message import Message
    from penstock.runtime.unit import Unit

KEY_MAX = 200
IN_PLACE_SECONDS = 60.0  # that a message waits in its handler's place for one that runs in this process
IN_PLACE_SHARE = 0.1  # and no more than this of the handler's time limit, which includes the wait
LOOK_SECONDS = 1.0  # between two looks at one that runs
COMMIT_SECONDS, COMMIT_LOOK_SECONDS = 0.25, 0.005  # that one has after it ran, and between two looks then
# After which one is delivered again whose turn has not come: longer for each before it, and the longer it has waited.
# The end of the one before it wakes it, so this is only for what ends in another way, and a long backlog costs little.
AGAIN_SECONDS, AGAIN_SECONDS_LONGEST, AGAIN_SHARE, AHEAD_SECONDS = 0.1, 5.0, 0.1, 1.0
AHEAD_MAX = 300  # messages of a key that are counted
WOKEN = 10  # behind dead ones: they wait for each other in their handlers' places
INSERT = (
    "insert into message_order (queue, message_id, key, position) values (:queue, :id, :key, :position) "
    "on conflict (queue, message_id) do nothing"
)
DELETE = "delete from message_order where queue = :queue and message_id = :id"
OWN = "select key, position from message_order where queue = :queue and message_id = :id"
FIRST = (
    "select message_id from message_order where queue = :queue and key = :key "
    "and (position < :position or (position = :position and message_id < :id)) order by position, message_id limit :limit"
)
NEXT = (
    "select message_id from message_order where queue = :queue and key = :key "
    "and (position > :position or (position = :position and message_id > :id)) order by position, message_id limit 1"
)
WAITS = {
    "sqlite": "select 1 from penstock_messages where id = :id and queue = :queue limit 1",
    "postgres": "select 1 from penstock.penstock_messages where id = :id and queue = :queue limit 1",
}


class Place(NamedTuple):
    key: str
    position: int
    id: str


class Before(NamedTuple):
    """The first message before another one, and how many there are."""

    id: str
    ahead: int


class LocalRun:
    """A message that runs, or waits for one that runs. Its commit follows within `COMMIT_SECONDS` of its end."""

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.until = float("inf")

    def end(self) -> None:
        self.until = asyncio.get_running_loop().time() + COMMIT_SECONDS
        self.ended.set()


class Order:
    """The order of one queue's messages."""

    def __init__(self, home: App, queue: str, key_of: Callable[[Any], str] | None = None) -> None:
        self._home = home
        self._queue = queue
        self._key_of = key_of
        self._last = 0
        self._here: dict[str, LocalRun] = {}  # messages that run, or wait for one, in this process

    def key(self, payload: object) -> str:
        """Return the key of a payload. Raises BadMessage where it is none."""
        key: Any = "" if self._key_of is None else self._key_of(payload)
        if not isinstance(key, str) or not 0 < len(key) <= KEY_MAX or "\0" in key:
            raise BadMessage(
                f"The order key of a message of {self._queue!r} is {key!r}: give 1 to {KEY_MAX} characters."
            )
        return key

    def note(self, unit: Unit, message: NewMessage, key: str, *, at: int | None = None) -> None:
        """Write the place of a message in the unit that sends it. Later units have later places."""
        moment = (message.sent_at if at is None else at) * 1_000 + len(unit.effects)
        position = self._last = max(moment, self._last + 1)
        self._home.db.write(INSERT, queue=self._queue, id=as_text(message.id), key=key, position=position)
        unit._calls -= 1  # a part of the send: any number of messages is sent in one unit

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a handler that lets the function run when it is the message's turn."""
        takes_message = len(inspect.signature(function).parameters) > 1

        @wraps(function)
        async def in_order(payload: object, message: Message[Any]) -> object:
            place = await self.place(message.id)
            run = self._here[message.id] = LocalRun()
            try:
                if place is not None and (first := await self._first(place)) is not None:
                    now = (await self._home._opened()).clock.now()
                    return later(first, waited=(now - message.delivery.sent_at) / MICROS)
                result = await (function(payload, message) if takes_message else function(payload))
                if place is not None and result is None and message.outcome in (None, ACK):
                    await self._end(place)
                return result
            finally:
                run.end()
                asyncio.get_running_loop().call_at(run.until, self._left, message.id, run)

        in_order.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("payload", "message")]
        )
        return in_order

    def forget(self, id: str) -> None:
        """Delete the place of a message in the current unit, which settles it."""
        self._home.db.write(DELETE, queue=self._queue, id=id)

    async def _end(self, place: Place) -> None:
        """Delete the place of a message in the current unit, which settles it and wakes the next message of the key."""
        unit = current_unit.get()
        assert unit is not None
        self.forget(place.id)
        await self._wake(unit, place)

    async def _wake(self, unit: Unit, place: Place, ids: Sequence[str] = ()) -> None:
        """Make these messages due, or else the one behind a place, when the unit commits."""
        ids = ids or await self._home.db.column(NEXT, {"queue": self._queue} | place._asdict())
        unit.effects.extend(WakeMessage(from_text(id), self._queue) for id in ids)

    async def place(self, id: str) -> Place | None:
        """Return the place of a message; None if it has none, such as a dead letter that was sent back."""
        row = await self._home.db.first(OWN, queue=self._queue, id=id)
        return None if row is None else Place(row.key, row.position, id)

    def _left(self, id: str, run: LocalRun) -> None:
        if self._here.get(id) is run:  # it may have been delivered again meanwhile
            del self._here[id]

    async def before(self, place: Place, *, beside: Collection[str] = ()) -> Before | None:
        """Return the first earlier message of the key that is left, other than those `beside`."""
        limit = len(beside) + AHEAD_MAX
        bound = {"queue": self._queue, "limit": limit} | place._asdict()
        while rows := await self._home.db.column(FIRST, bound):
            left = [id for id in rows if id not in beside]
            gone: list[str] = []
            while left and not await self._waits(left[0]):
                gone.append(left.pop(0))
            if gone:  # they died or were purged, and woke none
                async with self._home.unit() as unit:
                    for id in gone:
                        self.forget(id)
                    await self._wake(unit, place, left[:WOKEN])
            if left:
                return Before(left[0], len(left))
            if len(rows) < limit:
                break
        return None

    async def _first(self, place: Place) -> Before | None:
        """Wait for the turn of a message while the one before it runs here; return that one if the turn has not come."""
        limit, loop = self._home.queues[self._queue].settings.timeout_seconds, asyncio.get_running_loop()
        until = loop.time() + min(IN_PLACE_SECONDS, IN_PLACE_SHARE * limit)
        while (first := await self.before(place)) is not None:
            run = self._here.get(first.id)
            if run is None or loop.time() >= min(until, run.until):
                return first
            if run.ended.is_set():
                await asyncio.sleep(COMMIT_LOOK_SECONDS)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(until, loop.time() + LOOK_SECONDS)):
                    await run.ended.wait()
        return None

    async def _waits(self, id: str) -> bool:
        sql = WAITS[await self._home.db.dialect()]
        return await self._home.db.value(sql, id=from_text(id), queue=self._queue) is not None


def later(first: Before, *, waited: float) -> Later:
    """Return when a message is delivered again that was sent `waited` seconds ago and whose turn has not come."""
    again = min(AGAIN_SECONDS_LONGEST, max(AGAIN_SECONDS, AGAIN_SHARE * waited))
    # Or a long backlog would be delivered every few seconds, and take the time of the messages whose turn it is.
    return Later(max(again, AHEAD_SECONDS * (first.ahead - 1)))
