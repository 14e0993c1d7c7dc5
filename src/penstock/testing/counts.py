"""Where every message of a queue is, counted from rows: nothing may vanish and nothing may appear."""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.model.sql_files import load
from penstock.queues.letters import LIST_OF_QUEUE, DeadLetter, DeadLetterFilter, letter_of
from penstock.runtime.engine import Engine

SQL = load("penstock.testing", "counts.sql")
ROWS_MAX = 100_000  # what a test may look at in one go


class NotConserved(AssertionError):
    """A queue lost messages or made some up."""


class Counts(NamedTuple):
    """What waits and what is dead is counted in rows; the rest was counted when it happened."""

    sent: int
    acked: int
    ready: int
    leased: int
    delayed: int
    dead: int
    purged: int
    expired: int

    @property
    def missing(self) -> int:
        """Messages that were sent and are nowhere; negative if there are some that were never sent."""
        return self.sent - sum(self[1:])


async def counts_of(engine: Engine, queue: str) -> Counts:
    bound: dict[str, Any] = {"queue": queue, "now": engine.clock.now()}
    found = await engine.read("", SQL["rows"], bound, rows_max=1)
    return Counts(**dict(zip(found.columns, found.values[0], strict=True)))


async def dead_letters(engine: Engine, queue: str) -> list[DeadLetter]:
    found = await engine.read("", LIST_OF_QUEUE, DeadLetterFilter(queue=queue).bound(most=ROWS_MAX), rows_max=ROWS_MAX)
    return [letter_of(row) for row in found.values]


async def check_conservation(engine: Engine) -> None:
    queues = await engine.read("", SQL["queues"], {}, rows_max=ROWS_MAX)
    for (queue,) in queues.values:
        counts = await counts_of(engine, queue)
        if counts.missing:
            places = " + ".join(f"{name} {count}" for name, count in counts._asdict().items() if name != "sent")
            raise NotConserved(f"Queue {queue!r}: sent {counts.sent} is not {places}; {counts.missing} are missing.")
