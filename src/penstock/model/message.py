"""A message as it is sent and as it is delivered."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

PRIORITY_HIGH, PRIORITY_NORMAL, PRIORITY_LOW = 0, 1, 2
PRIORITIES = (PRIORITY_HIGH, PRIORITY_NORMAL, PRIORITY_LOW)


class NewMessage(NamedTuple):
    """One row for `penstock_messages`, in the order of its columns. Times are microseconds."""

    id: bytes
    handler: str
    queue: str
    priority: int
    due: int
    type: str
    source: str
    correlation_id: bytes
    causation_id: bytes | None
    hops: int
    sent_at: int
    checksum: int
    body: bytes


class Delivery(NamedTuple):
    """A claimed message. `seq` and `token` are its fence: they are valid until the row is settled or taken over. `rounds`
    counts the deliveries that ended with `Later` and kept what they did."""

    seq: int
    token: int
    id: bytes
    handler: str
    queue: str
    attempts: int
    crashes: int
    rounds: int
    type: str
    source: str
    correlation_id: bytes
    causation_id: bytes | None
    hops: int
    sent_at: int
    checksum: int
    body: bytes

    @property
    def attempt(self) -> int:
        """The number of this delivery as a user counts it: 1 on the first."""
        return self.attempts + 1


def checksum(id: bytes, body: bytes) -> int:
    """Guards against a damaged file: a body that changed on disk is never handed to a handler."""
    return crc32(body, crc32(id))
