"""What goes in and out of a queue by somebody who is not its handler: over HTTP, or at the command line."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from penstock.model.message import PRIORITY_NORMAL


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """One message from outside, not yet checked. With an `id` or a `unique` key a repeat is ignored."""

    body: object
    content_type: str = "json"
    delay_seconds: float | None = None
    priority: int = PRIORITY_NORMAL
    id: str | None = None
    unique: str | None = None


class Pushed(NamedTuple):
    """The ids in the order given; how many had been there before."""

    ids: list[str]
    duplicates: int


class Pulled(NamedTuple):
    """A message that is leased to somebody outside. Times are microseconds."""

    id: str
    lease_id: str
    attempts: int
    body: bytes
    content_type: str
    type: str
    sent_at: int


class Peeked(NamedTuple):
    id: str
    attempts: int
    body: bytes
    content_type: str
    type: str
    sent_at: int
    due: int


class Acked(NamedTuple):
    """`warnings` tells by lease id what could not be done, and why."""

    acked: int
    retried: int
    warnings: dict[str, str]
