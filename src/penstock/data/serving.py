"""A queue as it was registered, and the live processes that serve it: read from rows, nothing is asked of anybody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.contracts.workers import WorkerRow
from penstock.data.usage import Reading
from penstock.model.queue import LEASE_SLACK_SECONDS, PARALLEL_AUTOMATIC_MAX

WORKERS_MAX = 1_000

QUEUE = """
select name, paused, retries, retry_first_seconds, retry_longest_seconds, wall_seconds, crashes_max, batch, wait_seconds,
  parallel, parallel_tuned, rate, rate_tuned, next_start, messages_max, bytes_max, per_second_max, retention_seconds,
  dead_retention_seconds, accepts, watched
from penstock_queues
where name = :name
"""
# With the type null: whoever serves the queue at all. `handler` is empty unless several handlers share a type.
SERVING = """
select penstock_workers.id, penstock_workers.host, penstock_workers.pid, penstock_workers.started_at
from penstock_workers
where penstock_workers.id in (
  select worker
  from penstock_handlers
  where queue = :queue
  and (cast(:type as text) is null or type = :type)
  and (cast(:type as text) is null or handler in (:handler, ''))
)
order by penstock_workers.id
limit :most
"""

IsAlive = Callable[[WorkerRow], bool | None]  # None where nobody here can tell


class QueueRow(NamedTuple):
    """A queue's settings. What `_tuned` is None was left as the app declares it; a rate of 0 is no limit."""

    name: str
    paused: int
    retries: int
    retry_first_seconds: float
    retry_longest_seconds: float
    wall_seconds: float
    crashes_max: int
    batch: int
    wait_seconds: float
    parallel: int | None
    parallel_tuned: int | None
    rate: float | None
    rate_tuned: float | None
    next_start: int
    messages_max: int | None
    bytes_max: int | None
    per_second_max: int | None
    retention_seconds: float | None
    dead_retention_seconds: float | None
    accepts: str | None
    watched: int

    @property
    def rate_now(self) -> float | None:
        return (self.rate if self.rate_tuned is None else self.rate_tuned) or None

    @property
    def slots_most(self) -> int:
        """How many handlers one process runs at once, if the backlog asks for them."""
        return self.parallel_tuned or self.parallel or PARALLEL_AUTOMATIC_MAX

    @property
    def wait_micros(self) -> int:
        """How long a message may wait for its batch to fill."""
        return int(self.wait_seconds * 1_000_000) if self.batch > 1 else 0

    @property
    def lease_micros(self) -> int:
        return int((self.wall_seconds + LEASE_SLACK_SECONDS) * 1_000_000)

    def accepted(self) -> list[str] | None:
        """The types it takes; None for any."""
        return None if self.accepts is None else self.accepts.split()

    def settings(self) -> dict[str, Any]:
        hidden = {"name", "paused", "parallel_tuned", "rate_tuned", "next_start", "accepts"}
        facts = {field: value for field, value in self._asdict().items() if field not in hidden}
        return facts | {"watched": bool(self.watched)}


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The processes that serve something: those that are alive, on hosts nobody here can see, and gone without a word."""

    alive: Sequence[WorkerRow] = ()
    elsewhere: Sequence[WorkerRow] = ()
    gone: Sequence[WorkerRow] = ()

    @property
    def total(self) -> int:
        """How many may be there."""
        return len(self.alive) + len(self.elsewhere)

    def shown(self) -> str:
        if not self.total:
            return "no process" + (f" ({len(self.gone)} gone without a word)" if self.gone else "")
        parts = [f"{len(self.alive)} process{'' if len(self.alive) == 1 else 'es'}"] if self.alive else []
        if self.elsewhere:
            parts.append(f"{len(self.elsewhere)} on other hosts")
        return ", ".join(parts)


async def queue_row(reading: Reading, name: str) -> QueueRow | None:
    found = await reading.rows(QUEUE, name=name)
    return QueueRow(*found[0]) if found else None


async def serving(
    reading: Reading, queue: str, is_alive: IsAlive, *, type: str | None = None, handler: str = ""
) -> LiveWorkers:
    """Who can run a queue's messages, or those of one type."""
    found = await reading.rows(SERVING, queue=queue, type=type, handler=handler, most=WORKERS_MAX)
    by_life: dict[bool | None, list[WorkerRow]] = {True: [], None: [], False: []}
    for worker in (WorkerRow(*row) for row in found):
        by_life[is_alive(worker)].append(worker)
    return LiveWorkers(by_life[True], by_life[None], by_life[False])
