"""A message as it is sent and as it is delivered."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

PRIORITY_HIGH, PRIORITY_NORMAL, PRIORITY_LOW = 0, 1, 2
PRIORITIES = (PRIORITY_HIGH, PRIORITY_NORMAL, PRIORITY_LOW)


KEYED = 1  # its id can come back: a record of it outlives the row
REPAIRED = 2  # a repair hook has repaired it once; it is not repaired again
PAUSING = 4  # the worker that runs it stops at the next step
FLAG_BITS = 4  # of the column `flags`; the bits above hold the state of `model/loops.py`
FLAGS = (1 << FLAG_BITS) - 1


class NewMessage(NamedTuple):
    """One row for `penstock_messages`, in the order of its columns. Times are microseconds. `hops` counts the commands of
    its chain, `depth` all its messages."""

    id: bytes
    queue: str
    priority: int
    due: int
    type: str
    source: str
    correlation_id: bytes
    causation_id: bytes | None
    hops: int
    depth: int
    sent_at: int
    checksum: int
    body: bytes
    flags: int
    expires: int | None


class Delivery(NamedTuple):
    """A claimed message. `seq` and `token` are its fence: they are valid until the row is settled or taken over. `rounds`
    counts the deliveries that ended with `Later` and kept what they did. `before` is the token it had before, and 0 if
    it was never claimed."""

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
    depth: int
    sent_at: int
    checksum: int
    body: bytes
    flags: int
    replay_of: bytes | None
    before: int

    @property
    def origin(self) -> bytes:
        """The id it had before any replay: what was saved once under it stays saved."""
        return self.replay_of or self.id

    @property
    def attempt(self) -> int:
        """The number of this delivery as a user counts it: 1 on the first."""
        return self.attempts + 1


def checksum(id: bytes, body: bytes) -> int:
    """Guards against a damaged file: a body that changed on disk is never handed to a handler."""
    return crc32(body, crc32(id))
