"""Messages of a batch, and what goes in and out of a queue over HTTP or at the command line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

import msgspec

from penstock.model.errors import BadMessage
from penstock.model.message import PRIORITY_NORMAL

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing(Generic[T_co]):
    """One message of a batch: `Outgoing(payload=..., delay=60)`. What is None is left to the batch."""

    payload: T_co
    delay: float | timedelta | None = None
    priority: int = PRIORITY_NORMAL
    id: str | None = None
    unique: str | None = None
    correlation: str | None = None


def as_outgoing(item: T | Outgoing[T]) -> Outgoing[T]:
    return item if isinstance(item, Outgoing) else Outgoing(payload=item)


def staggered(
    items: Iterable[T | Outgoing[T]], *, every: float, delay: float = 0.0, group: int = 1
) -> Iterator[Outgoing[T]]:
    """Delays that grow by `every` seconds after each `group` of messages: 0, 60, 120 ... A message's own delay wins."""
    if group < 1 or every < 0:
        raise BadMessage(f"Messages cannot be spread {group} at a time every {every} s.", group=group, every=every)
    for index, item in enumerate(items):
        message = as_outgoing(item)
        yield message if message.delay is not None else replace(message, delay=delay + index // group * every)


class PushRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One message from outside, not yet checked. With an `id` or a `unique` key a repeat is ignored."""

    body: object
    content_type: str = "json"
    delay_seconds: float | None = None
    priority: int = PRIORITY_NORMAL
    id: str | None = None
    unique: str | None = None


class PushResult(NamedTuple):
    """The ids in the order given; how many had been there before."""

    ids: list[str]
    duplicates: int


class PulledMessage(NamedTuple):
    """A message that is leased to a client outside. Times are microseconds."""

    id: str
    lease_id: str
    attempts: int
    body: bytes
    content_type: str
    type: str
    sent_at: int


class PeekedMessage(NamedTuple):
    id: str
    attempts: int
    body: bytes
    content_type: str
    type: str
    sent_at: int
    due: int


class AckResult(NamedTuple):
    """`warnings` tells by lease id what could not be done, and why."""

    acked: int
    retried: int
    warnings: dict[str, str]
