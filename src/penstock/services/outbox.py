"""The outbox: messages to a queue of another database, committed with the unit that sent them and carried there later.

A message is wrapped in a message of the queue `outbox.<service>` of the sender's database. The handler of that queue is the
carrier. It posts up to a hundred at a time to the other service, which commits them under their own ids and ignores those
that it has already.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from penstock.model.errors import BadMessage, NoUnit, PenstockError, Refused, Throttled, Unavailable
from penstock.model.message import KEYED, PRIORITY_NORMAL, NewMessage, checksum
from penstock.model.outcome import Again, describe
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.routes import Reply, ServiceKey
from penstock.runtime.unit import Unit, current_unit
from penstock.services.peers import KEY, call, peer
from penstock.topics.order import Order

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.batch import Batch
    from penstock.queues.message import Message
    from penstock.queues.queue import Queue

PATH = "/v1/outbox"
PREFIX = "outbox."
ENGINES = ("cron.", "workflow.", "penstock.", PREFIX)  # queues whose messages only the engine of their database makes
BATCH = 100
PARALLEL = 8  # batches under way at once; one where messages keep an order, which would wait for each other
REQUEST_BYTES_MAX = 2_000_000  # of bodies in one request, unless a single one is larger
FIRST_SECONDS, LONGEST_SECONDS = 0.5, 60.0
IN_PLACE_SECONDS = 10.0  # a batch that failed and whose next try is further off is released, so that its rows say why
HOLD_SECONDS = 600.0  # the others wait in place for so long: what waits behind them is left as it is
WARN_SECONDS = 600.0  # a warning about a receiver that stays away is repeated at most this often
WAIT_SECONDS = 0.2  # of a message whose key has an earlier one that is not in the batch
SHARE_LEAST = 0.5  # of the back-off: a random part of it is left out, so that senders do not come back together
WRONG_KEY = 401
TOO_LARGE = 413  # the status of more than the receiver takes at once, however long one waits
NEVER = 1_000_000_000  # crashes: a kill of the carrier is never the message's fault
KIND = "application/vnd.penstock.outbox"
SOURCE, CHECKSUM = NewMessage._fields.index("source"), NewMessage._fields.index("checksum")
_write = msgspec.msgpack.Encoder().encode
_log = logging.getLogger("penstock.services")


Id = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]
Large = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]


class Carried(msgspec.Struct, frozen=True, array_like=True):
    """A message on its way, as it is written to the receiver: a `NewMessage` without its checksum. Times are microseconds.

    What no column can hold is refused here, so that a faulty sender harms no other message."""

    id: Id
    queue: str
    priority: Literal[0, 1, 2]
    due: Large
    type: Name
    source: Name
    correlation_id: Id
    causation_id: Id | None
    hops: Count
    depth: Count
    sent_at: Large
    body: bytes
    flags: Large
    expires: Large | None
    key: Name | None = None  # of messages whose order is kept


_read = msgspec.msgpack.Decoder(Carried).decode


class Accepted(msgspec.Struct, frozen=True):
    """What the receiver did: how many it had already, and those that it refused, by their place."""

    accepted: int
    duplicates: int
    refused: dict[int, str] = {}


class ServiceGroup:
    """The services of one app that have databases of their own."""

    def __init__(self, root: App) -> None:
        self._root = root
        self._orders: dict[tuple[str, str], Order] = {}

    def unit_for(self, home: App) -> Unit:
        """Return the current unit, which may be that of another service."""
        unit = current_unit.get()
        if unit is None:
            raise NoUnit
        if unit.closed:
            raise unit.refusal
        if unit.engine.app is not home and getattr(unit.engine.app, "group", None) is not self:
            raise NoUnit("The unit of work here belongs to another app. Open one: `async with other_app.unit():`.")
        return unit

    def put(self, unit: Unit, message: NewMessage, home: App, key: str | None = None) -> None:
        """Add a message to a unit: as it is, or wrapped for the carrier where its queue is in another database."""
        sender: App = unit.engine.app  # type: ignore[assignment]
        if sender is home:
            unit.send(message)
            return
        outbox = self.outbox(sender, home)
        now = message.sent_at
        # As `Carried` is written. Tuples are made and written twice as quickly, and one is made for every message.
        body = _write((*message[:SOURCE], sender.name, *message[SOURCE + 1 : CHECKSUM], *message[CHECKSUM + 1 :], key))
        # The id that `send` returned finds the row, but one of the caller's own may be on its way to two queues.
        id = unit.next_id(outbox.name, now) if message.flags & KEYED else message.id
        wrapped: NewMessage = tuple.__new__(
            NewMessage,
            (
                *(id, outbox.name, PRIORITY_NORMAL, now, "bytes", sender.name),
                *(message.correlation_id, message.causation_id, message.hops, message.depth, now),
                *(checksum(id, body), body, 0, None),
            ),
        )
        unit.send(wrapped)
        if key is not None:
            order = self._orders.setdefault((sender.name, outbox.name), Order(sender, outbox.name))
            order.note(unit, wrapped, key)

    def declare(self, sender: App) -> None:
        """Declare the queues through which a member sends to the others. They have to be there before it runs."""
        for target in self._root.services.values():
            if target is not sender:
                self.outbox(sender, target)

    def outbox(self, sender: App, target: App) -> Queue[Any]:
        name = f"{PREFIX}{target.name}"
        if (queue := sender.queues.get(name)) is None:
            settings = QueueSettings(
                name,
                batch=BATCH,
                parallel=1 if self._root.keeps_order else PARALLEL,
                crashes_max=NEVER,
                retry=Retry(NEVER, first=1.0, longest=60.0),
            )
            queue = sender._internal_queue(settings, bytes)
            queue.batch_handler(Carrier(sender, self._root, target.name).carry)
        return queue


class Carrier:
    """Carries the messages of one sender to one receiver."""

    def __init__(self, sender: App, root: App, target: str) -> None:
        self._sender = sender
        self._root = root
        self._target = target
        self._failures = 0
        self._reason = ""
        self._next_try = 0.0  # no batch is posted before, after a failure
        self._next_warning = 0.0

    async def carry(self, batch: Batch[bytes]) -> Again | None:
        """Post a batch. If the receiver stays away, return that it is released uncharged, with the reason.

        The other batches wait in place for the next try, so a long backlog is not claimed again and again."""
        messages = await self._in_turn(batch)
        for portion in _portions([message.body for message in messages]):
            try:
                answer = await self._delivered([messages[place].body for place in portion])
            except Unavailable as away:  # described once, and not logged for each message
                return Again(away.retry_after or 0.0, charged=False, failure=describe(away))
            for place, reason in answer.refused.items():
                messages[portion[place]].discard(f"{self._target} refused it: {reason}")
        return None

    async def _in_turn(self, batch: Batch[bytes]) -> list[Message[bytes]]:
        """Return the messages that may be carried, each after those of its key before it; the others wait for those."""
        if not self._sender.root.keeps_order:
            return list(batch)
        order = Order(self._sender, f"{PREFIX}{self._target}")
        placed = [(await order.place(message.id), message) for message in batch]
        placed.sort(key=lambda each: (0, "") if each[0] is None else each[0][1:])
        beside = {message.id for _, message in placed}
        ready: list[Message[bytes]] = []
        for place, message in placed:
            if place is not None and await order.before(place, beside=beside) is not None:
                beside.discard(message.id)
                message.later(WAIT_SECONDS)
                continue
            ready.append(message)
            if place is not None:
                order.forget(message.id)
        return ready

    async def _delivered(self, bodies: Sequence[bytes]) -> Accepted:
        content = b"".join((len(bodies).to_bytes(4, "big"), *(_framed(body) for body in bodies)))
        until = self._now() + HOLD_SECONDS
        while True:
            if (wait := self._next_try - self._now()) > 0 and (
                self._now() + wait > until or await self._is_stopped_within(wait)
            ):
                raise self._away()
            began = self._now()
            try:
                accepted = await self._post(content, len(bodies))
            except PenstockError as error:
                if isinstance(error, Refused) and error.facts.get("status") == TOO_LARGE:
                    return await self._divided(bodies, error)
                if began < self._next_try:
                    continue  # another batch failed meanwhile, and that was counted
                self._failed(error)
                if self._next_try - self._now() > IN_PLACE_SECONDS:
                    raise self._away() from None
            else:
                self._succeeded()
                return accepted

    def _failed(self, error: PenstockError) -> None:
        hint = f" Set the same {KEY} where both services run." if error.facts.get("status") == WRONG_KEY else ""
        self._reason = f"{error}{hint}"
        wait = self._wait(error)
        self._next_try = self._now() + wait
        if wait > IN_PLACE_SECONDS and self._now() >= self._next_warning:
            self._next_warning = self._now() + WARN_SECONDS
            _log.warning(
                "outbox.%s: %s took no messages %d times in a row. They wait, none is lost, the next try is in %.0f s. %s",
                *(self._target, self._target, self._failures, wait, self._reason),
            )

    def _succeeded(self) -> None:
        if self._next_warning:
            _log.info("outbox.%s: %s takes messages again.", self._target, self._target)
        self._failures, self._next_try, self._next_warning = 0, 0.0, 0.0

    def _away(self) -> Unavailable:
        wait = max(0.0, self._next_try - self._now())
        return Unavailable(f"{self._target} takes no messages now: {self._reason}", retry_after=wait)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _divided(self, bodies: Sequence[bytes], error: Refused) -> Accepted:
        """Deliver in halves what a bounded queue does not take at once. One message that is too large alone is refused."""
        if len(bodies) == 1:
            return Accepted(0, 0, {0: str(error)})
        middle = len(bodies) // 2
        one, other = await self._delivered(bodies[:middle]), await self._delivered(bodies[middle:])
        refused = one.refused | {place + middle: reason for place, reason in other.refused.items()}
        return Accepted(one.accepted + other.accepted, one.duplicates + other.duplicates, refused)

    async def _post(self, content: bytes, count: int) -> Accepted:
        target = peer(self._root, self._target)
        answer = await call(self._sender, target, "POST", PATH, content=content, **{"Content-Type": KIND})
        try:
            accepted = msgspec.json.decode(answer.body, type=Accepted)
        except msgspec.MsgspecError:
            accepted = Accepted(0, 0)
        if accepted.accepted + len(accepted.refused) != count or not set(range(count)) >= accepted.refused.keys():
            raise Unavailable(f"What answers POST {target.url}{PATH} is no outbox: it does not say what it took.")
        return accepted

    async def _is_stopped_within(self, seconds: float) -> bool:
        """Wait; return early, and True, if the worker is to stop."""
        worker = self._sender._life.worker
        if worker is None:
            return True
        return await worker.stops_within(seconds)

    def _wait(self, error: PenstockError) -> float:
        """Count one more failure, and return how long to wait after it."""
        longest = min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(self._failures, 20))
        self._failures += 1
        asked = error.retry_after if isinstance(error, Throttled | Unavailable) else None
        return max(min(asked or 0.0, HOLD_SECONDS), longest * (SHARE_LEAST + (1 - SHARE_LEAST) * self._random()))

    def _random(self) -> float:
        engine = self._sender._life.engine
        if engine is None:
            return 0.5
        return float(engine.surroundings.random.random())


def _portions(bodies: Sequence[bytes]) -> Iterator[list[int]]:
    """Split a batch into the places of what one request holds."""
    portion: list[int] = []
    held = 0
    for place, body in enumerate(bodies):
        if portion and held + len(body) > REQUEST_BYTES_MAX:
            yield portion
            portion, held = [], 0
        portion.append(place)
        held += len(body)
    if portion:
        yield portion


def _framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def unframed(content: bytes) -> list[Carried | str]:
    """Return the messages of a request, or why one is none. Raises BadMessage where the request is none of a carrier."""
    count, at, found = int.from_bytes(content[:4], "big"), 4, list[Carried | str]()
    while at < len(content) and len(found) < count:
        size = int.from_bytes(content[at : at + 4], "big")
        try:
            found.append(_read(content[at + 4 : at + 4 + size]))
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            found.append(f"it cannot be read: {error}")
        at += 4 + size
    if at != len(content) or len(found) != count or not found:
        raise BadMessage("The request is not of an outbox: its length does not fit.", field="body")
    return found


# -- the receiving side -----------------------------------------------------------------------------------------------


def receive_at(app: App) -> None:
    """Add the route that takes the messages of other services."""

    async def take_outbox(body: bytes) -> Reply:
        """Take messages of another service, once each."""
        return Reply(msgspec.json.encode(await receive(app, unframed(body))), "application/json")

    app.routes.add("POST", PATH, ServiceKey(KEY), 200)(take_outbox)


async def receive(app: App, carried: Sequence[Carried | str]) -> Accepted:
    """Commit what other services sent, in one unit. A message that is there already, or was, is ignored."""
    refused: dict[int, str] = {}
    async with app.unit() as unit:
        unit.task = "outbox"
        for place, each in enumerate(carried):
            if (reason := _refusal(app, each)) is not None:
                refused[place] = reason
                continue
            assert isinstance(each, Carried)
            received, order = _received(each), app.queues[each.queue].order
            unit.send(received)
            if order is not None and each.key is not None:
                order.note(unit, received, each.key, at=unit.engine.clock.now())
    unit.engine.faults.at("send.after_commit")
    return Accepted(len(carried) - len(refused), len(unit.answer.duplicates), refused)


def _refusal(app: App, each: Carried | str) -> str | None:
    """Return why a message is not taken, None if it is."""
    if isinstance(each, str):
        return each
    queue = app.queues.get(each.queue)
    if queue is None or each.queue.startswith(ENGINES) or each.queue.endswith("-dlq"):
        return f"there is no queue {each.queue[:100]!r}"
    if queue.accepts is not None and each.type not in queue.accepts:
        return f"queue {each.queue} accepts no {each.type[:100]!r}"
    if "\0" in each.type or "\0" in each.source or "\0" in (each.key or ""):
        return "its type, source or key has a character that no column holds"
    return None


def _received(each: Carried) -> NewMessage:
    return NewMessage(
        *(each.id, each.queue, each.priority, each.due, each.type, each.source, each.correlation_id, each.causation_id),
        *(
            each.hops,
            each.depth,
            each.sent_at,
            checksum(each.id, each.body),
            each.body,
            each.flags | KEYED,
            each.expires,
        ),
    )
