"""Order by key: a message waits until no earlier one of its key is left in its queue.

Each message of such a queue has a row with its key and its position. The row is written by the unit that sends the message,
and deleted by the unit that settles it. A message that became a dead letter, or was purged, is waited for no longer.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Collection
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.model.errors import BadMessage
from penstock.model.ids import as_text, from_text
from penstock.model.message import NewMessage
from penstock.model.outcome import Later
from penstock.queues.message import ACK

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.message import Message
    from penstock.runtime.unit import Unit

KEY_MAX = 200
IN_PLACE_SECONDS = 60.0  # that a message waits in its handler's place for one that runs in this process
IN_PLACE_SHARE = 0.1  # and no more than this of the handler's time limit, which includes the wait
FIRST_SECONDS, LONGEST_SECONDS = 0.01, 0.25  # between two looks
# After which a message is delivered again whose turn has not come: each time longer.
AGAIN_SECONDS, AGAIN_SECONDS_LONGEST = 0.1, 5.0
HEADS_MAX = 1_000
INSERT = (
    "insert into message_order (queue, message_id, key, position) values (:queue, :id, :key, :position) "
    "on conflict (queue, message_id) do nothing"
)
DELETE = "delete from message_order where queue = :queue and message_id = :id"
OWN = "select key, position from message_order where queue = :queue and message_id = :id"
HEADS = (
    "select message_id from message_order where queue = :queue and key = :key "
    "and (position < :position or (position = :position and message_id < :id)) order by position, message_id limit :limit"
)
WAITS = {
    "sqlite": "select 1 from penstock_messages where id = :id and queue = :queue limit 1",
    "postgres": "select 1 from penstock.penstock_messages where id = :id and queue = :queue limit 1",
}


class Place(NamedTuple):
    key: str
    position: int
    id: str


class Order:
    """The order of one queue's messages."""

    def __init__(self, home: App, queue: str, key_of: Callable[[Any], str] | None = None) -> None:
        self._home = home
        self._queue = queue
        self._key_of = key_of
        self._last = 0
        self._here: set[str] = set()  # messages that run, or wait for one that runs, in this process
        self._put_off: dict[str, int] = {}  # how often each message was put off by this process

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
            self._here.add(message.id)
            try:
                if place is not None and not await self._comes(place):
                    return self._later(message.id)
                self._put_off.pop(message.id, None)
                result = await (function(payload, message) if takes_message else function(payload))
                if place is not None and result is None and message.outcome in (None, ACK):
                    self.forget(message.id)
                return result
            finally:
                self._here.discard(message.id)

        in_order.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in ("payload", "message")]
        )
        return in_order

    def forget(self, id: str) -> None:
        """Delete the place of a message in the current unit, which settles it."""
        self._home.db.write(DELETE, queue=self._queue, id=id)

    async def place(self, id: str) -> Place | None:
        """Return the place of a message; None if it has none, such as a dead letter that was sent back."""
        row = await self._home.db.first(OWN, queue=self._queue, id=id)
        return None if row is None else Place(row.key, row.position, id)

    def _later(self, id: str) -> Later:
        times = self._put_off[id] = self._put_off.get(id, 0) + 1
        return Later(min(AGAIN_SECONDS_LONGEST, AGAIN_SECONDS * 1.5 ** min(times, 20)))

    async def before(self, place: Place, *, beside: Collection[str] = ()) -> str | None:
        """Return the id of the first earlier message of the key that is left, other than those `beside`."""
        bound = {"queue": self._queue, "key": place.key, "position": place.position, "id": place.id, "limit": HEADS_MAX}
        for row in await self._home.db.rows(HEADS, bound):
            if row.message_id in beside:
                continue
            if await self._waits(row.message_id):
                return str(row.message_id)
            async with self._home.unit():  # it died or was purged
                self.forget(row.message_id)
        return None

    async def _comes(self, place: Place) -> bool:
        """Wait for the turn of a message while the one before it runs here; return whether its turn has come."""
        limit = self._home.queues[self._queue].settings.timeout_seconds
        waited, pause, most = 0.0, FIRST_SECONDS, min(IN_PLACE_SECONDS, IN_PLACE_SHARE * limit)
        while (first := await self.before(place)) is not None:
            if first not in self._here or waited + pause > most:
                return False
            await asyncio.sleep(pause)
            waited, pause = waited + pause, min(2 * pause, LONGEST_SECONDS)
        return True

    async def _waits(self, id: str) -> bool:
        sql = WAITS[await self._home.db.dialect()]
        return await self._home.db.value(sql, id=from_text(id), queue=self._queue) is not None
