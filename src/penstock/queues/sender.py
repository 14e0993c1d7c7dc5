"""The sending half of a queue: checks a payload, builds its message and adds it to the current unit of work."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_origin

from penstock.model import loops
from penstock.model.envelope import ANY_JSON, Command, Encoded, encode, parts_of, type_name, types_in
from penstock.model.errors import BadMessage, LoopBroken, TooLarge
from penstock.model.ids import NO_PARENT, as_text, correlation_of, derived
from penstock.model.message import KEYED, PRIORITIES, PRIORITY_NORMAL, Delivery, NewMessage, checksum
from penstock.model.queue import QueueSettings
from penstock.model.times import in_seconds
from penstock.queues.external import Outgoing, as_outgoing, staggered
from penstock.runtime.events import ChainGrewLong, MessageWasLarge
from penstock.runtime.unit import Unit, require_unit

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from penstock.app import App
    from penstock.topics.order import Order

    T = TypeVarWithDefault("T", contravariant=True, default=dict[str, Any])  # a queue of A and B is a queue of A
else:
    T = TypeVar("T", contravariant=True)


class Sender(Generic[T]):
    """The part of a queue that messages are sent with."""

    def __init__(self, home: App, settings: QueueSettings, payload_type: Any) -> None:
        accepts = None if payload_type is ANY_JSON else types_in(payload_type)
        self._home = home
        self._limits = home.limits
        self.settings = settings if accepts is None else replace(settings, accepts=tuple(accepts))
        self.name = settings.name
        self.accepts = accepts
        parts = [(name, part) for name, accepted in (accepts or {}).items() for part in parts_of(accepted)]
        self._types: dict[Any, str] = {get_origin(part) or part: name for name, part in parts}
        self._warned: set[str] = set()
        self.order: Order | None = None  # in which its messages are handled, by key
        self._retention_micros = None if settings.retention_seconds is None else int(settings.retention_seconds * 1e6)
        self._body_bytes_max = home.limits.body_bytes_max - home.limits.body_overhead_bytes
        self._looked_at_bytes = min(self._body_bytes_max, home.limits.body_bytes_soft)

    def send(
        self,
        payload: T,
        *,
        delay: float | timedelta = 0.0,
        priority: int = PRIORITY_NORMAL,
        id: str | None = None,
        unique: str | None = None,
        correlation: str | None = None,
    ) -> str:
        """Send a message in the current unit of work, and return its id.

        It is sent when the unit commits. `delay` is seconds or a timedelta; `priority` 0 is high, 1 normal, 2 low. A
        message with an `id` (a UUID) or a `unique` key is delivered once, however often it is sent within `dedup_seconds`.
        `correlation` (a UUID or any text) starts a new chain of that name; by default a message continues the chain of the
        message that led to it.

        Example:
            orders.send(Order(id=7), delay=60)"""
        group = self._home.group
        unit: Unit = require_unit(self._home) if group is None else group.unit_for(self._home)
        name = self._types.get(type(payload)) or self._accepted(payload)
        body = encode(payload)
        if len(body) > self._looked_at_bytes:
            self._check_size(unit, name, body)
        seconds = 0.0 if delay == 0.0 and priority == PRIORITY_NORMAL else self._checked(delay, priority)
        now = unit.engine.clock.now()
        if id is None and unique is None:
            key, flags = unit.next_id(name, now), 0
        else:
            key, flags = self._key(id, unique), KEYED
        message = self._message(unit, key, payload, name, body, seconds, priority, flags, correlation, now)
        order_key = None if self.order is None else self.order.key(payload)
        if group is not None:
            group.put(unit, message, self._home, order_key)
        else:
            unit.send(message)
        if order_key is not None and self.order is not None and unit.engine.app is self._home.keeper:
            self.order.note(unit, message, order_key)
        return as_text(message.id)

    def _build(self, unit: Unit, payload: object, *, id: bytes, priority: int = PRIORITY_NORMAL) -> NewMessage:
        """Build a message with this id that inherits the unit's causation. The caller sends it."""
        name = self._types.get(type(payload)) or self._accepted(payload)
        body = encode(payload)
        self._check_size(unit, name, body)
        self._checked(0.0, priority)
        return self._message(unit, id, payload, name, body, 0.0, priority, 0, None, unit.engine.clock.now())

    def send_batch(
        self, items: Iterable[T | Outgoing[T]], *, delay: float | timedelta = 0.0, correlation: str | None = None
    ) -> list[str]:
        """Sends payloads, or `Outgoing` messages with a delay of their own, all or nothing. Refuses more than one send may
        hold; `send_all` takes any number."""
        messages = [as_outgoing(item) for item in items]
        limits = self._limits
        if len(messages) > limits.send_messages_max:
            raise TooLarge(
                f"A batch of {len(messages):,} messages is too large for queue {self.name!r}: at most "
                f"{limits.send_messages_max:,}. Nothing was sent. Use `send_all`, which takes any number.",
                messages=len(messages),
                messages_max=limits.send_messages_max,
            )
        with self._unit().sending_all() as sent:
            ids = [self._send(message, delay, correlation) for message in messages]
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
        items: Iterable[T | Outgoing[T]],
        *,
        delay: float | timedelta = 0.0,
        every: float | timedelta | None = None,
        rate: int | None = None,
        correlation: str | None = None,
    ) -> list[str]:
        """Sends any number, all or nothing. `every` delays each by that many seconds more; `rate` lets that many begin in a
        second. A unit of work holds 4 MB: for more, open one for each of `chunks`."""
        if every is not None and rate is not None:
            raise BadMessage("Give `every` or `rate`, not both.")
        if every is not None:
            items = staggered(items, every=in_seconds(every), delay=in_seconds(delay))
        elif rate is not None:
            items = staggered(items, every=1.0, delay=in_seconds(delay), group=rate)
        with self._unit().sending_all():
            return [self._send(as_outgoing(item), delay, correlation) for item in items]

    def _unit(self) -> Unit:
        """Return the current unit, which may be another service's where they have databases of their own."""
        group = self._home.group
        unit: Unit = require_unit(self._home) if group is None else group.unit_for(self._home)
        return unit

    def _send(self, message: Outgoing[T], delay: float | timedelta, correlation: str | None) -> str:
        return self.send(
            message.payload,
            delay=delay if message.delay is None else message.delay,
            priority=message.priority,
            id=message.id,
            unique=message.unique,
            correlation=correlation if message.correlation is None else message.correlation,
        )

    def chunks(self, items: Iterable[T | Outgoing[T]]) -> Iterator[list[Outgoing[T]]]:
        """Splits any number of messages into batches that one send may hold, by count and by bytes."""
        limits = self._limits
        chunk: list[Outgoing[T]] = []
        held = 0
        for item in items:
            message = as_outgoing(item)
            size = self.size_of(message.payload)
            if chunk and (len(chunk) >= limits.send_messages_max or held + size > limits.send_bytes_max):
                yield chunk
                chunk, held = [], 0
            chunk.append(message)
            held += size
        if chunk:
            yield chunk

    def size_of(self, payload: T) -> int:
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

    def _checked(self, delay: float | timedelta, priority: int) -> float:
        longest: float = self._limits.delay_seconds_max
        seconds: Any = delay.total_seconds() if isinstance(delay, timedelta) else delay
        if not isinstance(seconds, int | float) or not 0 <= seconds <= longest:
            raise BadMessage(f"A delay of {delay!r} s is not possible: it can be 0 to {longest:,.0f}.", delay=delay)
        if priority not in PRIORITIES:
            raise BadMessage(f"Priority {priority!r} does not exist: 0 is high, 1 normal, 2 low.", priority=priority)
        return float(seconds)

    def _check_size(self, unit: Unit, name: str, body: bytes) -> None:
        if len(body) > self._body_bytes_max:
            raise TooLarge(
                f"A {name} of {len(body):,} bytes is too large for queue {self.name!r}: at most "
                f"{self._body_bytes_max:,}. Store it and send a reference.",
                bytes=len(body) + self._limits.body_overhead_bytes,
                bytes_max=self._limits.body_bytes_max,
            )
        if len(body) > self._limits.body_bytes_soft and name not in self._warned:
            self._warned.add(name)
            unit.engine.events.emit(MessageWasLarge(self.name, name, len(body)))

    def _key(self, id: str | None, unique: str | None) -> bytes:
        if id is not None and unique is not None:
            raise BadMessage("Give an `id` or a `unique` key, not both. Nothing was sent.", id=id, unique=unique)
        if unique is not None:
            if not isinstance(unique, str):
                raise BadMessage(f"unique={unique!r} is not a key: give text. Nothing was sent.", field="unique")
            return derived(NO_PARENT, self.name, unique)
        try:
            return uuid.UUID(id).bytes
        except (ValueError, AttributeError, TypeError) as error:
            raise BadMessage(
                f"{id!r} is not an id: give a UUID, or any text as `unique=`. Nothing was sent.", id=id
            ) from error

    def _named_chain(self, correlation: object) -> bytes:
        if not isinstance(correlation, str) or not correlation.strip():
            raise BadMessage(
                f"correlation={correlation!r} is not a valid name of a chain: give a UUID or any text. Nothing was sent.",
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
        correlation: str | None,
        now: int,
    ) -> NewMessage:
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
            self._home.name if self._home.keeper is self._home else self._source(consumed),
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

    def _source(self, consumed: Delivery | None) -> str:
        """Return the service that sends: the one whose queue the message came from that is being handled."""
        keeper = self._home.keeper
        origin = None if consumed is None else keeper.queues.get(consumed.queue)
        return keeper.name if origin is None else str(origin._home.name)

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
        if name not in self._warned:
            self._warned.add(name)
            unit.engine.events.emit(ChainGrewLong(self.name, name, hops, depth))
