"""Ids that sort by time: UUIDv7 for what is new, UUIDv8 for what follows from something else."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from hashlib import blake2b
from random import Random

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62
_DRAWN = (1 << 61) - 1  # one bit less than there is room for
_VERSION_8 = 0x8 << 76 | _VARIANT
NO_PARENT = bytes(16)  # ids from a caller's key are derived from nothing but the key
_MARKS = 0xF << 76 | 0x3 << 62  # the bits that tell version and variant


class IdSource:
    """Makes ids that never repeat and never run backwards within a process."""

    def __init__(self, now: Callable[[], int], random: Random) -> None:
        self._now = now
        self._bits = random.getrandbits
        self._millisecond = 0
        self._last = 0

    def new(self) -> bytes:
        return self.new_at(self._now())

    def new_at(self, now: int) -> bytes:
        """The first id of a millisecond is drawn, the next ones count on from it: half the range is left for them."""
        millisecond = now // 1000
        if millisecond > self._millisecond:
            self._millisecond = millisecond
            drawn = self._bits(73)
            high = (millisecond & 0xFFFFFFFFFFFF) << 80 | (drawn >> 61) << 64
            self._last = high | _VERSION_7 | _VARIANT | drawn & _DRAWN
        else:
            self._last += 1
        return self._last.to_bytes(16, "big")


def derived(parent: bytes, *parts: str) -> bytes:
    """The id of something that `parent` led to. The same parts give the same id, and it sorts beside its parent."""
    digest = blake2b(parent + "\x1f".join(parts).encode(), digest_size=10).digest()
    return (int.from_bytes(parent[:6] + digest, "big") & ~_MARKS | _VERSION_8).to_bytes(16, "big")


def correlation_of(name: str) -> bytes:
    """The id of a chain that its caller has named: a UUID is that id, any other text stands for one."""
    try:
        return from_text(name)
    except ValueError:
        return derived(NO_PARENT, "correlation", name)


def as_text(id: bytes) -> str:
    text = id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def from_text(text: str) -> bytes:
    return uuid.UUID(text).bytes
