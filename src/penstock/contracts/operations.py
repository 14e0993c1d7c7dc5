"""What an operator, or an external client, does with queues by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from penstock.model.message import Delivery


class Lease(NamedTuple):
    """A row that an external client holds."""

    seq: int
    token: int


class Tuning(NamedTuple):
    """None leaves things as the app declares them; a rate of 0 is no limit."""

    parallel: int | None
    rate: float | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """What waits or is under way. `oldest_at` is when the first message that waits became due."""

    count: int
    bytes: int
    oldest_at: int | None


class Expired(NamedTuple):
    """How many messages outlived their queue's retention, and when the next one will."""

    messages: int
    dead: int
    next_expiry: int | None


class Operations(Protocol):
    """Lives in the writer's thread. Each method is one transaction."""

    def queues(self) -> list[str]: ...
    def pause(self, queue: str, *, paused: bool) -> bool:
        """False if there is no such queue."""

    def tune(self, queue: str, tuning: Tuning) -> bool: ...
    def purge(self, queue: str, *, limit: int, now: int, id: bytes | None = None) -> int:
        """Removes at most `limit` waiting messages, or the one with this id; how many it removed."""

    def expire(self, *, now: int, limit: int) -> Expired:
        """Removes at most `limit` messages, and as many dead letters, that outlived their queue's retention."""

    def leased(self, leases: Sequence[Lease]) -> list[Delivery]:
        """Those that are still held."""

    def peek(self, queue: str, *, limit: int) -> list[tuple[int, Delivery]]:
        """The next messages that wait, each with the time it is due. Nothing is claimed."""

    def backlog(self, queue: str) -> Backlog: ...
    def dead(self) -> list[tuple[str, int]]:
        """Return the queues with unresolved dead letters, and how many."""

    def aging(self, *, before: int, now: int, limit: int) -> list[tuple[str, int]]:
        """Queues with dead letters that failed before then and of which no warning was sent, with their number. They count
        as warned from now on."""
