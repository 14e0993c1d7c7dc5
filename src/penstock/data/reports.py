"""Reports on the health of queues: what was processed, what died, and how many messages a minute."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from penstock.contracts.history import HistoryReader, MinuteCount, Processed
from penstock.data.usage import Reading
from penstock.model.sql_files import load

T = TypeVar("T")

MINUTE = 60_000_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
MINUTES = 30  # of the rate of messages
SCANNED = 100_000  # dead letters that are looked at, the newest; more in one day are another kind of trouble
GROUPS_MAX = 1_000

SQL = load("penstock.data", "data.sql")


class Asking(Protocol):
    """Puts questions to the history in the thread it lives in."""

    async def ask(self, question: Callable[[HistoryReader], T]) -> T: ...


class DeadGroup(msgspec.Struct, frozen=True):
    """Messages of one type that died in one queue, and how many of them are unresolved."""

    queue: str
    type: str
    messages: int
    unresolved: int


class QueueHealth(msgspec.Struct, frozen=True):
    processed: list[Processed]
    dead: list[DeadGroup]
    per_minute: list[MinuteCount]


async def health(reading: Reading, history: Asking, *, now: int) -> QueueHealth:
    """All three reports of one moment."""
    return QueueHealth(
        await processed(history, now=now), await dead_letters(reading, now=now), await per_minute(history, now=now)
    )


async def processed(history: Asking, *, now: int, window: int = HOUR) -> list[Processed]:
    """Messages acknowledged in the last hour, by type and source, most first. Minutes are counted whole."""
    return await history.ask(lambda file: file.processed(now - window, now))


async def dead_letters(reading: Reading, *, now: int, window: int = DAY) -> list[DeadGroup]:
    """Messages that died in the last day, by queue and type, most first, also those that were replayed since."""
    found = await reading.rows(SQL["newest_dead"], since=now - window, until=now, scanned=SCANNED, most=GROUPS_MAX)
    return [DeadGroup(*row) for row in found]


async def per_minute(history: Asking, *, now: int, minutes: int = MINUTES) -> list[MinuteCount]:
    """Messages acknowledged in each of the last 30 minutes, oldest first; the last is the one that still runs.

    A minute is a moment in time and no text like 23:59, so that the order holds across midnight.
    """
    last = now // MINUTE * MINUTE
    first = last - (minutes - 1) * MINUTE
    counted = dict(await history.ask(lambda file: file.per_minute(first, now)))
    return [MinuteCount(minute, counted.get(minute, 0)) for minute in range(first, last + MINUTE, MINUTE)]
