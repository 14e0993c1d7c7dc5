"""Queues: what waits in each, how one is set, and the live processes that serve it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from penstock.contracts.workers import WorkerRow
from penstock.data import overview
from penstock.data.usage import Reading
from penstock.model.errors import NoSuchQueue
from penstock.model.queue import LEASE_SLACK_SECONDS, PARALLEL_AUTOMATIC_MAX, is_internal
from penstock.queues.desk import no_such_queue
from penstock.views.observer import Observer
from penstock.views.view import BYTES, COUNT, SPAN, TEXT, Column, Kind, Row, View, counted, span_text

WORKERS_MAX = 1_000

QUEUE = """
select name, paused, retries, retry_first_seconds, retry_longest_seconds, timeout_seconds, crashes_max, batch,
  batch_wait_seconds, parallel, parallel_tuned, rate, rate_tuned, next_start, messages_max, bytes_max, per_second_max,
  retention_seconds, dead_retention_seconds, accepts, watched
from penstock_queues
where name = :name
"""
# With the type null: all that serve the queue. `handler` is empty unless several handlers share a type.
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

IsAlive = Callable[[WorkerRow], bool | None]  # None where that is not known on this host


class QueueRow(NamedTuple):
    """A queue's settings. What `_tuned` is None was left as the app declares it; a rate of 0 is no limit."""

    name: str
    paused: int
    retries: int
    retry_first_seconds: float
    retry_longest_seconds: float
    timeout_seconds: float
    crashes_max: int
    batch: int
    batch_wait_seconds: float
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
        """Return how many handlers one process runs at once, if the backlog needs them."""
        return self.parallel_tuned or self.parallel or PARALLEL_AUTOMATIC_MAX

    @property
    def wait_micros(self) -> int:
        """Return how long a message may wait for its batch to fill."""
        return int(self.batch_wait_seconds * 1_000_000) if self.batch > 1 else 0

    @property
    def lease_micros(self) -> int:
        return int((self.timeout_seconds + LEASE_SLACK_SECONDS) * 1_000_000)

    def accepted(self) -> list[str] | None:
        """Return the types it takes; None for any."""
        return None if self.accepts is None else self.accepts.split()

    def settings(self) -> dict[str, Any]:
        hidden = {"name", "paused", "parallel_tuned", "rate_tuned", "next_start", "accepts"}
        facts = {field: value for field, value in self._asdict().items() if field not in hidden}
        return facts | {"watched": bool(self.watched)}


@dataclass(frozen=True, slots=True)
class LiveWorkers:
    """The processes that serve something: alive, on hosts that cannot be seen from here, and ended without notice."""

    alive: Sequence[WorkerRow] = ()
    elsewhere: Sequence[WorkerRow] = ()
    gone: Sequence[WorkerRow] = ()

    @property
    def total(self) -> int:
        """Return how many may be alive."""
        return len(self.alive) + len(self.elsewhere)


async def queue_row(reading: Reading, name: str) -> QueueRow | None:
    found = await reading.rows(QUEUE, name=name)
    return QueueRow(*found[0]) if found else None


async def serving(
    reading: Reading, queue: str, is_alive: IsAlive, *, type: str | None = None, handler: str = ""
) -> LiveWorkers:
    """Return the processes that can run a queue's messages, or those of one type."""
    found = await reading.rows(SERVING, queue=queue, type=type, handler=handler, most=WORKERS_MAX)
    by_life: dict[bool | None, list[WorkerRow]] = {True: [], None: [], False: []}
    for worker in (WorkerRow(*row) for row in found):
        by_life[is_alive(worker)].append(worker)
    return LiveWorkers(by_life[True], by_life[None], by_life[False])


# -- rows and columns ---------------------------------------------------------------------------------------


async def rows(observer: Observer) -> list[Row]:
    """Return each queue in the agreed shape. `exact` is there only where ready and delayed were not told apart."""
    found = await overview.queues(observer, now=observer.now())
    return [without_exact(msgspec.to_builtins(state)) for state in found]


def without_exact(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != "exact" or not value}


async def one(observer: Observer, name: str) -> Row:
    """Return one queue with its settings, what was tuned, and the processes that serve it."""
    found = {row["name"]: row for row in await rows(observer)}
    queue = await queue_row(observer, name)
    if name not in found or queue is None:
        raise NoSuchQueue(no_such_queue(name, list(found)), queue=name)
    workers = await serving(observer, name, observer.is_alive)
    hosts = [{"id": each.id, "host": each.host, "pid": each.pid} for each in (*workers.alive, *workers.elsewhere)]
    tuned = {"parallel": queue.parallel_tuned, "rate": queue.rate_tuned}
    return found[name] | {
        "settings": queue.settings(),
        "tuned": tuned,
        "accepts": queue.accepted(),
        "served_by": hosts,
    }


def rate_text(rate: float | None) -> str:
    return f"{rate:g} a second" if rate else "no limit"


def _tuned(row: Row, name: str, text: Callable[[Any], str]) -> str:
    tuned, declared = row["tuned"][name], text(row["settings"][name])
    return declared if tuned is None else f"{text(tuned)} (tuned; the app declares {declared})"


def _retries(row: Row) -> str:
    settings = row["settings"]
    first, longest = settings["retry_first_seconds"], settings["retry_longest_seconds"]
    return f"{settings['retries']:,}, after {span_text(first)} up to {span_text(longest)}"


def _batch(row: Row) -> str | None:
    settings = row["settings"]
    return (
        f"{settings['batch']:,}, or what waits after {settings['batch_wait_seconds']:g} s"
        if settings["batch"] > 1
        else None
    )


def _ever(row: Row) -> str:
    return ", ".join(f"{row[name]:,} {word}" for name, word in EVER.items() if row[name] or name in ("sent", "acked"))


EVER = {"sent": "sent", "acked": "done", "purged": "purged", "expired": "expired"}
AT_LEAST = Kind(lambda value, _: value, right=True)  # where ready and delayed were not counted apart
NAME = Column("name", "queue", TEXT, of=lambda row: row["name"] + (" (paused)" if row["paused"] else ""))
DEPTH = (
    Column("ready", "ready", AT_LEAST, of=lambda row: ("" if row.get("exact", True) else "≥ ") + f"{row['ready']:,}"),
    Column("leased", "leased", COUNT, rank=1),
    Column(
        "delayed", "delayed", AT_LEAST, of=lambda row: ("" if row.get("exact", True) else "≤ ") + f"{row['delayed']:,}"
    ),
    Column("dead", "dead", COUNT),
    Column("oldest_age_seconds", "oldest", SPAN, rank=2),
)
QUEUES = View(
    "queues",
    (NAME, *DEPTH, Column("sent", "sent", COUNT, rank=4), Column("acked", "acked", COUNT, rank=3)),
    rows,
    "No queue has been used yet. `penstock run` registers the queues of an app.",
    is_internal=lambda row: is_internal(row["name"]) and not row["dead"],
)
ONE = (
    *DEPTH,
    Column("", "since the start", TEXT, of=_ever),
    Column("", "served by", TEXT, of=lambda row: counted(len(row["served_by"]), "process", "processes")),
    Column("", "accepts", TEXT, of=lambda row: ", ".join(row["accepts"] or ["any message"])),
    Column(
        "", "parallel", TEXT, of=lambda row: _tuned(row, "parallel", lambda most: f"{most:,}" if most else "automatic")
    ),
    Column("", "rate", TEXT, of=lambda row: _tuned(row, "rate", rate_text)),
    Column("", "retries", TEXT, of=_retries),
    Column("", "timeout", SPAN, of=lambda row: row["settings"]["timeout_seconds"]),
    Column("", "batch", TEXT, of=_batch),
    Column("", "messages at most", COUNT, of=lambda row: row["settings"]["messages_max"]),
    Column("", "bytes at most", BYTES, of=lambda row: row["settings"]["bytes_max"]),
    Column("", "expire after", SPAN, of=lambda row: row["settings"]["retention_seconds"]),
)
