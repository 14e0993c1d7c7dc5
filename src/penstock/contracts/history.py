"""The history: what became of every delivery. It is written after the work, which never waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")
Run = Callable[[str, Mapping[str, Any]], list[tuple[Any, ...]]]  # a statement of storage/points.sql, by its name


class Entry(NamedTuple):
    """One delivery that has ended. Times are microseconds; `service` is the app that ran it."""

    ended_at: int
    correlation_id: bytes
    id: bytes
    causation_id: bytes | None
    kind: str  # message
    service: str
    queue: str
    name: str
    source: str
    attempt: int
    status: str  # acked, retried, later, released, dead, split
    started_at: int
    error: str | None


class Processed(NamedTuple):
    """How many messages of a type from a source were acknowledged."""

    type: str
    source: str
    messages: int


class MinuteCount(NamedTuple):
    """How many messages were acknowledged in the minute that began then, in microseconds."""

    minute: int
    messages: int


class SettledCount(NamedTuple):
    """How many deliveries of a queue ended so in the minute that began then, in microseconds."""

    minute: int
    queue: str
    status: str
    messages: int


class HistoryReader(Protocol):
    """Answers what happened. Lives in one thread, and raises StoreError where the history cannot be read."""

    def chain(self, correlation_id: bytes, limit: int) -> list[Entry]:
        """What happened in one chain, in the order it was noted; the first `limit` of it."""

    def of_message(self, id: bytes) -> list[Entry]:
        """The deliveries of one message; at most a thousand."""

    def processed(self, since: int, until: int) -> list[Processed]:
        """Counts by type and source, most first, over the whole minutes that `since` and `until` lie in."""

    def per_minute(self, since: int, until: int) -> list[MinuteCount]:
        """Counts by minute, oldest first, from the minute of `since` to that of `until`. Minutes without any are left out."""

    def settled(self, since: int, until: int) -> list[SettledCount]:
        """Counts by minute, queue and status, newest first; at most 5,000."""

    def latest(self, until: int, limit: int) -> list[Entry]:
        """The last deliveries that were noted until then, newest first."""

    def points(
        self, sql: str, bound: dict[str, Any], *, rows_max: int, seconds_max: float
    ) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """The columns and at most `rows_max + 1` rows of a query over the tables of data points; nothing where there are
        none. What reads anything else is refused with StatementFailed, as is what takes longer than `seconds_max`."""

    def bytes(self) -> int:
        """How much space the history uses; what was pruned and will be used again is not counted."""

    def close(self) -> None: ...


class HistoryFile(HistoryReader, Protocol):
    """The same, and it can be added to. Several processes may add to one history."""

    def append(self, entries: Sequence[Entry]) -> str | None:
        """Adds all entries or raises StoreError. If the history was damaged and replaced, return a sentence."""

    def prune(self, before: int, limit: int) -> int:
        """Removes at most `limit` entries that were noted before then, the oldest first; how many it removed."""

    def transact(self, work: Callable[[Run], T]) -> T:
        """Does `work`, which runs statements over the tables of data points, in one transaction. It may be done again."""
