"""Queues: what waits in each, how one is set, and the live processes that serve it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.contracts.workers import WorkerRow
from penstock.data.usage import Reading
from penstock.model.errors import NoSuchQueue
from penstock.model.queue import LEASE_SLACK_SECONDS, PARALLEL_AUTOMATIC_MAX, is_internal
from penstock.model.sql_files import load
from penstock.queues.admin import no_such_queue
from penstock.views.observer import Observer
from penstock.views.view import Column, Row, View, counted, span_text

SQL = load("penstock.views", "queues.sql")
# Messages are counted only as far as it takes to distinguish ready from delayed: counters know how many there are, and mostly
# few are of one kind. Where that is not enough, more are counted.
COUNTED = (20, 200, 2_000, 10_000)
QUEUES_MAX = 10_000
WORKERS_MAX = 1_000
LEASED_MAX = 100_000  # what all workers together can hold


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
    found = await reading.rows(SQL["queue"], name=name)
    return QueueRow(*found[0]) if found else None


async def serving(
    reading: Reading, queue: str, is_alive: IsAlive, *, type: str | None = None, handler: str = ""
) -> LiveWorkers:
    """Return the processes that can run a queue's messages, or those of one type."""
    found = await reading.rows(SQL["serving"], queue=queue, type=type, handler=handler, most=WORKERS_MAX)
    by_life: dict[bool | None, list[WorkerRow]] = {True: [], None: [], False: []}
    for worker in (WorkerRow(*row) for row in found):
        by_life[is_alive(worker)].append(worker)
    return LiveWorkers(by_life[True], by_life[None], by_life[False])


# -- rows and columns ---------------------------------------------------------------------------------------


async def rows(reading: Reading, *, now: int) -> list[Row]:
    """Return all queues, read in one statement and so of one moment.

    sent = acked + ready + leased + delayed + dead + purged + expired. `exact` is false where too many messages are both ready
    and delayed that they were not counted apart: `ready` is then the least it can be."""
    found: list[Row] = []
    for most in COUNTED:
        queues = await reading.rows(SQL["queues"], now=now, most=most, leased_max=LEASED_MAX, queues_max=QUEUES_MAX)
        found = [_row(queue, now, most) for queue in queues]
        if all(row["exact"] for row in found):
            break
    return found


def _row(queue: Any, now: int, most: int) -> Row:
    waiting = queue.sent - queue.acked - queue.dead - queue.purged - queue.expired - queue.leased
    ready, delayed = queue.ready, waiting - queue.ready
    if queue.delayed < most:
        ready, delayed = waiting - queue.delayed, queue.delayed
    is_due = queue.first_due is not None and queue.first_due <= now
    return {
        "name": queue.name,
        "sent": queue.sent,
        "acked": queue.acked,
        "ready": ready,
        "leased": queue.leased,
        "delayed": delayed,
        "dead": queue.dead,
        "purged": queue.purged,
        "expired": queue.expired,
        "oldest_age_seconds": (now - queue.first_due) / 1_000_000 if is_due else None,
        "paused": bool(queue.paused),
        "exact": queue.delayed < most or queue.ready < most,
    }


async def processes(reading: Reading) -> list[WorkerRow]:
    """Return the processes that have enrolled and not left. Their locks say whether they are alive."""
    rows = await reading.rows(SQL["workers"], most=WORKERS_MAX)
    return [WorkerRow(row.id, row.host, row.pid, row.started_at, bool(row.runs_handlers)) for row in rows]


async def listed(observer: Observer) -> list[Row]:
    """Return all queues in the agreed shape, which has `exact` only where it is false."""
    found = await rows(observer, now=observer.now())
    return [{name: value for name, value in row.items() if name != "exact" or not value} for row in found]


async def one(observer: Observer, name: str) -> Row:
    """Return one queue with its settings, what was tuned, and the processes that serve it."""
    found = {row["name"]: row for row in await listed(observer)}
    queue = await queue_row(observer, name)
    if name not in found or queue is None:
        raise NoSuchQueue(no_such_queue(name, list(found)), queue=name)
    workers = await serving(observer, name, observer.is_alive)
    hosts = [{"id": each.id, "host": each.host, "pid": each.pid} for each in (*workers.alive, *workers.elsewhere)]
    tuned = {"parallel": queue.parallel_tuned, "rate": queue.rate_tuned}
    return found[name] | {"settings": queue.settings(), "tuned": tuned, "accepts": queue.accepted(), "served_by": hosts}


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
    most = settings["batch"]
    return f"{most:,}, or what waits after {settings['batch_wait_seconds']:g} s" if most > 1 else None


def _ever(row: Row) -> str:
    return ", ".join(f"{row[name]:,} {word}" for name, word in EVER.items() if row[name] or name in ("sent", "acked"))


EVER = {"sent": "sent", "acked": "done", "purged": "purged", "expired": "expired"}
NAME = Column("name", "queue", of=lambda row: row["name"] + (" (paused)" if row["paused"] else ""))
DEPTH = (
    Column("ready", "ready", "figure", of=lambda row: ("" if row.get("exact", True) else "≥ ") + f"{row['ready']:,}"),
    Column("leased", "leased", "count", rank=1),
    Column(
        "delayed", "delayed", "figure", of=lambda row: ("" if row.get("exact", True) else "≤ ") + f"{row['delayed']:,}"
    ),
    Column("dead", "dead", "count"),
    Column("oldest_age_seconds", "oldest", "span", rank=2),
)
QUEUES = View(
    "queues",
    (NAME, *DEPTH, Column("sent", "sent", "count", rank=4), Column("acked", "acked", "count", rank=3)),
    listed,
    "No queue has been used yet. `penstock run` registers the queues of an app.",
    is_internal=lambda row: is_internal(row["name"]) and not row["dead"],
)
ONE = (
    *DEPTH,
    Column("", "since the start", of=_ever),
    Column("", "served by", of=lambda row: counted(len(row["served_by"]), "process", "processes")),
    Column("", "accepts", of=lambda row: ", ".join(row["accepts"] or ["any message"])),
    Column("", "parallel", of=lambda row: _tuned(row, "parallel", lambda most: f"{most:,}" if most else "automatic")),
    Column("", "rate", of=lambda row: _tuned(row, "rate", rate_text)),
    Column("", "retries", of=_retries),
    Column("", "timeout", "span", of=lambda row: row["settings"]["timeout_seconds"]),
    Column("", "batch", of=_batch),
    Column("", "messages at most", "count", of=lambda row: row["settings"]["messages_max"]),
    Column("", "bytes at most", "bytes", of=lambda row: row["settings"]["bytes_max"]),
    Column("", "expire after", "span", of=lambda row: row["settings"]["retention_seconds"]),
)


def tuned(name: str, parallel: int | None, rate: float | None) -> str:
    """Return what an action reports."""
    handlers = "as the app declares" if parallel is None else f"{parallel:,}"
    starts = "as the app declares" if rate is None else rate_text(rate)
    return f"Tuned queue {name}: parallel {handlers}, rate {starts}."
