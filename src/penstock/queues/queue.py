"""A named queue: `send` joins the current unit of work, `on` and `on_batch` name who handles what comes out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

from penstock.contracts.ledger import Also
from penstock.contracts.workers import HandlerRow
from penstock.model import loops
from penstock.model.envelope import CONTENT_TYPES, Command, Encoded, bulky_fields, encode, type_name
from penstock.model.errors import BadApp, BadMessage, LoopBroken, TooLarge
from penstock.model.ids import NO_PARENT, as_text, correlation_of, derived
from penstock.model.limits import Limits
from penstock.model.message import KEYED, PRIORITIES, PRIORITY_NORMAL, Delivery, NewMessage, checksum
from penstock.model.queue import QueueSettings
from penstock.queues.handler import BatchHandler, Handler, HandlerFunction
from penstock.queues.parcel import Draft, drafted, staggered
from penstock.runtime.events import ChainGrewLong, MessageWasLarge
from penstock.runtime.unit import Unit, joined

AnyHandler = TypeVar("AnyHandler", bound=HandlerFunction)


class Home(Protocol):
    """The app a queue belongs to."""

    @property
    def name(self) -> str: ...
    @property
    def limits(self) -> Limits: ...
    def _watch(self, queue: Queue) -> None: ...


class Queue:
    """Durable. One consumer, any number of senders; what is sent is there once the unit that sent it has committed."""

    def __init__(self, home: Home, settings: QueueSettings, accepts: Iterable[type] | None) -> None:
        self._home = home
        self._limits = home.limits
        self.settings = settings
        self.name = settings.name
        self.handlers: dict[str, tuple[Handler, ...]] = {}
        self.batch_handler: BatchHandler | None = None
        self.dead_handler: HandlerFunction | None = None
        self.repairer: HandlerFunction | None = None
        self.accepts = None if accepts is None else {type_name(accepted): accepted for accepted in accepts}
        self._types: dict[type, str] = {accepted: name for name, accepted in (self.accepts or {}).items()}
        self._told: set[str] = set()
        self._retention_micros = None if settings.retention_seconds is None else int(settings.retention_seconds * 1e6)
        self._body_bytes_max = home.limits.body_bytes_max - home.limits.body_overhead_bytes
        self._looked_at_bytes = min(self._body_bytes_max, home.limits.body_bytes_soft)

    # -- sending ----------------------------------------------------------------------------------------

    def send(
        self,
        payload: object,
        *,
        delay: float = 0.0,
        priority: int = PRIORITY_NORMAL,
        id: str | None = None,
        unique: str | None = None,
        correlation: str | None = None,
    ) -> str:
        """Joins the current unit of work and returns the message's id. Nothing is sent before the unit commits.

        `delay` in seconds; `priority` 0 is high, 1 normal, 2 low. With an `id` (a UUID of yours) or a `unique` key the same
        message can be sent again without being delivered again, for as long as `dedup_seconds` says. `correlation` (a UUID
        or any text) starts a new chain of that name; without it a message belongs to the chain of what led to it."""
        unit = joined(self._home)
        name = self._types.get(type(payload)) or self._accepted(payload)
        body = encode(payload)
        if len(body) > self._looked_at_bytes:
            self._check_size(unit, name, body)
        if delay != 0.0 or priority != PRIORITY_NORMAL:
            self._check(delay, priority)
        if id is None and unique is None:
            message = self._message(unit, unit.next_id(name), payload, name, body, delay, priority, 0, correlation)
        else:
            key = self._key(id, unique)
            message = self._message(unit, key, payload, name, body, delay, priority, KEYED, correlation)
            if unit.also is None:
                unit.also = Also()
        unit.send(message)
        return as_text(message.id)

    def made(self, unit: Unit, payload: object, *, id: bytes, priority: int = PRIORITY_NORMAL) -> NewMessage:
        """A message of this id that follows from what the unit follows from, for whoever sends it in his own way."""
        name = self._types.get(type(payload)) or self._accepted(payload)
        body = encode(payload)
        self._check_size(unit, name, body)
        self._check(0.0, priority)
        return self._message(unit, id, payload, name, body, 0.0, priority, 0)

    def send_batch(self, items: Iterable[object], *, delay: float = 0.0, correlation: str | None = None) -> list[str]:
        """Sends payloads, or drafts with their own delay, all or nothing. Refuses more than one send may hold; `send_all`
        takes any number."""
        drafts = [drafted(item) for item in items]
        limits = self._limits
        if len(drafts) > limits.send_messages_max:
            raise TooLarge(
                f"A batch of {len(drafts):,} messages is too large for queue {self.name!r}: at most "
                f"{limits.send_messages_max:,}. Nothing was sent. Use `send_all`, which takes any number.",
                messages=len(drafts),
                messages_max=limits.send_messages_max,
            )
        with joined(self._home).sending_all() as sent:
            ids = [self._send(draft, delay, correlation) for draft in drafts]
            size = sum(len(message.body) + limits.body_overhead_bytes for message in sent())
            if size > limits.send_bytes_max:
                raise TooLarge(
                    f"A batch of {size:,} bytes is too large for queue {self.name!r}: at most {limits.send_bytes_max:,}. "
                    "Nothing was sent. Use `send_all`, which takes any number.",
                    bytes=size,
                    bytes_max=limits.send_bytes_max,
                )
        return ids

    def send_all(
        self,
        items: Iterable[object],
        *,
        delay: float = 0.0,
        every: float | None = None,
        rate: int | None = None,
        correlation: str | None = None,
    ) -> list[str]:
        """Sends any number, all or nothing. `every` staggers them by so many seconds each; `rate` lets that many begin in a
        second. A unit of work holds 4 MB: for more, open one for each of `chunks`."""
        if every is not None and rate is not None:
            raise BadMessage("Give `every` or `rate`, not both.")
        if every is not None:
            items = staggered(items, every=every, delay=delay)
        elif rate is not None:
            items = staggered(items, every=1.0, delay=delay, group=rate)
        with joined(self._home).sending_all():
            return [self._send(drafted(item), delay, correlation) for item in items]

    def _send(self, draft: Draft, delay: float, correlation: str | None) -> str:
        return self.send(
            draft.payload,
            delay=delay if draft.delay is None else draft.delay,
            priority=draft.priority,
            id=draft.id,
            unique=draft.unique,
            correlation=correlation if draft.correlation is None else draft.correlation,
        )

    def chunks(self, items: Iterable[object]) -> Iterator[list[Draft]]:
        """Splits any number of messages into batches that one send may hold, by count and by bytes."""
        limits = self._limits
        chunk: list[Draft] = []
        held = 0
        for item in items:
            draft = drafted(item)
            size = self.size_of(draft.payload)
            if chunk and (len(chunk) >= limits.send_messages_max or held + size > limits.send_bytes_max):
                yield chunk
                chunk, held = [], 0
            chunk.append(draft)
            held += size
        if chunk:
            yield chunk

    def size_of(self, payload: object) -> int:
        """What a message counts as: its body, and what the envelope adds."""
        return len(encode(payload)) + self._limits.body_overhead_bytes

    def _accepted(self, payload: object) -> str:
        if isinstance(payload, Encoded):
            if self.accepts is None or payload.type in self.accepts:
                return payload.type
            name = payload.type
        else:
            name = type_name(type(payload))
        if self.accepts is not None:
            raise BadMessage(
                f"Queue {self.name!r} does not accept {type(payload).__qualname__} ({name!r}); it accepts "
                f"{', '.join(self.accepts)}. Nothing was sent.",
                type=name,
            )
        self._types[type(payload)] = name
        return name

    def _check(self, delay: object, priority: int) -> None:
        longest = self._limits.delay_seconds_max
        if not isinstance(delay, int | float) or not 0 <= delay <= longest:
            raise BadMessage(f"A delay of {delay!r} s is not possible: it can be 0 to {longest:,.0f}.", delay=delay)
        if priority not in PRIORITIES:
            raise BadMessage(f"Priority {priority!r} does not exist: 0 is high, 1 normal, 2 low.", priority=priority)

    def _check_size(self, unit: Unit, name: str, body: bytes) -> None:
        if len(body) > self._body_bytes_max:
            raise TooLarge(
                f"A {name} of {len(body):,} bytes is too large for queue {self.name!r}: at most "
                f"{self._body_bytes_max:,}. Store it and send a reference.",
                bytes=len(body) + self._limits.body_overhead_bytes,
                bytes_max=self._limits.body_bytes_max,
            )
        if len(body) > self._limits.body_bytes_soft and name not in self._told:
            self._told.add(name)
            unit.engine.events.emit(MessageWasLarge(self.name, name, len(body)))

    def _key(self, id: str | None, unique: str | None) -> bytes:
        if id is not None and unique is not None:
            raise BadMessage("Give an `id` or a `unique` key, not both. Nothing was sent.", id=id, unique=unique)
        if unique is not None:
            if not isinstance(unique, str):
                raise BadMessage(f"unique={unique!r} is no key: give text. Nothing was sent.", field="unique")
            return derived(NO_PARENT, self.name, unique)
        try:
            return uuid.UUID(id).bytes
        except (ValueError, AttributeError, TypeError) as error:
            raise BadMessage(
                f"{id!r} is no id: give a UUID, or any text as `unique=`. Nothing was sent.", id=id
            ) from error

    def _named_chain(self, correlation: object) -> bytes:
        if not isinstance(correlation, str) or not correlation.strip():
            raise BadMessage(
                f"correlation={correlation!r} names no chain: give a UUID or any text. Nothing was sent.",
                field="correlation",
            )
        return correlation_of(correlation)

    def _message(
        self,
        unit: Unit,
        id: bytes,
        payload: object,
        name: str,
        body: bytes,
        delay: float,
        priority: int,
        flags: int,
        correlation: str | None = None,
    ) -> NewMessage:
        now = unit.engine.clock.now()
        consumed = unit.origin
        correlation_id = None if correlation is None else self._named_chain(correlation)
        causation_id, hops, depth = None if consumed is None else consumed.id, 0, 0
        if consumed is not None and correlation_id in (None, consumed.correlation_id):
            correlation_id, hops, depth = consumed.correlation_id, consumed.hops, consumed.depth + 1
            if not delay:
                flags |= self._rounds(consumed, name, body, now)
        if isinstance(payload, Command):
            hops += 1
        soft = self._limits.hops_soft
        if depth >= self._limits.depth_soft or (soft is not None and hops > soft):
            self._warn_of_depth(unit, name, hops, depth)
        due = now + int(delay * 1_000_000)
        # Made through the tuple itself: twice as quick as calling the class, and one is made for every message.
        values = (
            id,
            self.name,
            priority,
            due,
            name,
            self._home.name,
            correlation_id or id,
            causation_id,
            hops,
            depth,
            now,
            checksum(id, body),
            body,
            flags,
            None if self._retention_micros is None else now + self._retention_micros,
        )
        return tuple.__new__(NewMessage, values)

    def _rounds(self, consumed: Delivery, name: str, body: bytes, now: int) -> int:
        rounds, state = loops.follow(consumed, name, body, now=now)
        most = self._limits.loop_max
        if rounds >= most:
            raise LoopBroken(
                f"{name!r} to queue {self.name!r} came round {most} times within {loops.LOOP_SECONDS} s with the same "
                "payload and without a delay. Send it with `delay=`, another payload or a new `correlation=`, or "
                f"raise `loop_max` under [limits] in penstock.toml (at most {loops.ROUNDS_MAX:,}).",
                loop_max=most,
            )
        return state

    def _warn_of_depth(self, unit: Unit, name: str, hops: int, depth: int) -> None:
        if name not in self._told:
            self._told.add(name)
            unit.engine.events.emit(ChainGrewLong(self.name, name, hops, depth))

    # -- handling ---------------------------------------------------------------------------------------

    def on(self, payload_class: type, *, name: str | None = None) -> Callable[[AnyHandler], AnyHandler]:
        """Names a handler of a type of message: `@orders.on(OrderPlaced)`. Several handlers of one type each get their own
        copy with its own retries; `name` (the function's) tells them apart and must stay the same over deploys."""
        type_ = self._types.get(payload_class) or type_name(payload_class)
        if self.accepts is not None and type_ not in self.accepts:
            raise BadApp(
                f"Queue {self.name!r} does not accept {type_!r}; it accepts {', '.join(self.accepts)}. Add the class to "
                "`accepts=`."
            )

        def register(function: AnyHandler) -> AnyHandler:
            handler = Handler(self.name, payload_class, function, name)
            if self.batch_handler is not None:
                raise self._second(handler.name)
            known = self.handlers.get(type_, ())
            if any(each.name == handler.name for each in known):
                raise BadApp(
                    f"Queue {self.name!r} has two handlers of {type_!r} called {handler.name!r}. Give one of them "
                    "another `name=`."
                )
            self.handlers[type_] = (*known, handler)
            return function

        return register

    def on_batch(self, function: AnyHandler) -> AnyHandler:
        """Names the one handler that gets this queue's messages many at a time: `async def score(batch: Batch)`."""
        handler = BatchHandler(self.name, function)
        if self.batch_handler is not None or self.handlers:
            raise self._second(handler.name)
        self.batch_handler = handler
        return function

    def on_dead(self, function: AnyHandler) -> AnyHandler:
        """Names who hears of this queue's dead letters: `async def alarm(letter: DeadLetter)`, with retries of its own."""
        self.dead_handler = function
        self._watched()
        return function

    def repair(self, function: AnyHandler) -> AnyHandler:
        """Names who may mend a dead letter: it gets the letter and returns a payload to send back, or None; once."""
        self.repairer = function
        self._watched()
        return function

    def _watched(self) -> None:
        self.settings = replace(self.settings, watched=True)
        self._home._watch(self)

    @property
    def is_served(self) -> bool:
        return bool(self.handlers) or self.batch_handler is not None

    def known(self) -> list[HandlerRow]:
        """What this queue's handlers can run, for other workers to know."""
        if self.batch_handler is not None:
            return [HandlerRow(self.name, type_, "") for type_ in self.accepts or CONTENT_TYPES]
        rows = [HandlerRow(self.name, type_, "") for type_ in self.handlers]
        return rows + [
            HandlerRow(self.name, type_, handler.name)
            for type_, handlers in self.handlers.items()
            for handler in handlers
        ]

    def _second(self, name: str) -> BadApp:
        known = (
            self.batch_handler.name
            if self.batch_handler
            else ", ".join(handler.name for handlers in self.handlers.values() for handler in handlers)
        )
        return BadApp(
            f"Queue {self.name!r} has two consumers: {known} and {name}. A queue has one handler for batches, or handlers "
            "for single messages."
        )

    def advice(self) -> list[str]:
        """What a reader of this queue's types would remark on."""
        return [
            f"{type_}.{field} looks like a thing itself. Store it, and send its id."
            for type_, payload_class in (self.accepts or {}).items()
            for field in bulky_fields(payload_class)
        ]

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"
