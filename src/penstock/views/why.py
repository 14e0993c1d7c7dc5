"""Why a message is not running, and when it will, found from its row, its queue's and its workers'.

`waiting` reads; the decisions are functions of what was read. Where several things hold a message back, the one that
lasts longest or needs an operator comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from penstock.contracts.workers import WorkerRow
from penstock.data.usage import Reading
from penstock.model.ids import as_text
from penstock.model.pacing import interval_micros
from penstock.model.row import Row
from penstock.model.run import queue_of
from penstock.model.sql_files import load
from penstock.model.stack import error_line, located
from penstock.model.times import iso_z
from penstock.views import runs
from penstock.views.queues import IsAlive, LiveWorkers, QueueRow, queue_row, serving

SQL = load("penstock.views", "why.sql")
PULLED = 0  # the worker of a row that is leased to a client
NOT_BEGUN = 0
COUNTED_MAX = 10_000  # messages that are counted; more are reported as this many
LEASED_MAX = 100_000  # what all workers together can hold
ROWS_MAX = 100  # of one id: one for each queue and handler it was sent to
ERROR_TEXT_MAX = 500
ATTEMPTS_SHOWN_MAX = 1_000_000  # a queue that allows more never gives up, such as an outbox


# When a worker began a row: its time, NOT_BEGUN if it has only claimed it, None where that is not known on this host.
Began = Callable[[int, int], int | None]


class Crowd(NamedTuple):
    """What else is in a queue: messages that come first, are ready, are leased; and suspects, which run alone."""

    ahead: int
    ready: int
    first_due: int | None
    leased: int
    suspects: int


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that holds a message back. `when` is the earliest time at which it ends, None if that is not known."""

    state: str
    reason: str
    when: int | None = None

    def row(self) -> dict[str, Any]:
        return {"state": self.state, "reason": self.reason, "when": None if self.when is None else iso_z(self.when)}


@dataclass(frozen=True, slots=True)
class MessageState:
    """What is known of one message in one queue."""

    id: bytes
    queue: str
    type: str
    finding: Cause
    besides: list[Cause] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        return {
            "id": as_text(self.id),
            **self.finding.row(),
            "queue": self.queue,
            "type": self.type,
            **self.facts,
            "besides": [finding.row() for finding in self.besides],
        }


async def waiting(reading: Reading, id: bytes, *, now: int, is_alive: IsAlive, began: Began) -> list[MessageState]:
    """Return the answer for each queue, and for each handler, in which the message is not settled."""
    rows = await reading.rows(SQL["messages"], id=id, most=ROWS_MAX)
    return [await _answer(reading, row, now, is_alive, began) for row in rows]


def ended_run(run: Row) -> MessageState:
    """Return the answer for a run of a workflow that has ended."""
    error = "" if run.error is None else f": {located(runs.error_line(run.error), run.traceback)}"
    shown = f"See its steps with: penstock workflows show {run.id}"
    finding = Cause(run.state, f"Run {run.id} of {run.workflow} is {run.state}{error}. {shown}", run.ended_at)
    return MessageState(bytes(run.key), queue_of(run.workflow), runs.TYPE, finding, [], {"handler": None})


async def _answer(reading: Reading, row: Row, now: int, is_alive: IsAlive, began: Began) -> MessageState:
    queue = await queue_row(reading, row.queue)
    facts = _facts(row, queue)
    if row.worker is not None:
        found = [WorkerRow(*each) for each in await reading.rows(SQL["worker"], worker=row.worker)]
        holder = found[0] if found and row.worker != PULLED else None
        if holder is not None:
            facts["worker"] = {"id": holder.id, "pid": holder.pid, "host": holder.host}
        started = None if holder is None else began(holder.id, row.seq)
        if queue is not None and row.worker != PULLED:
            facts["since"] = iso_z(started or row.due - queue.lease_micros)
        alive = False if holder is None else is_alive(holder)
        return MessageState(
            bytes(row.id), row.queue, row.type, held(row, holder, alive, started, queue, now), [], facts
        )
    (counted,) = await reading.rows(
        SQL["crowd"],
        queue=row.queue,
        priority=row.priority,
        due=row.due,
        seq=row.seq,
        now=now,
        most=COUNTED_MAX,
        leased_max=LEASED_MAX,
    )
    crowd = Crowd(*counted)
    facts["ahead"] = crowd.ahead if row.due <= now else None
    serves = await serving(reading, row.queue, is_alive)
    able = await serving(reading, row.queue, is_alive, type=row.type, handler=row.handler)
    first, *besides = obstacles(row, queue, crowd, serves, able, now)
    if row.type == runs.TYPE and row.due > now and (wait := await runs.wait_of(reading, bytes(row.id), now=now)):
        first = Cause(*wait)
    return MessageState(bytes(row.id), row.queue, row.type, first, besides, facts)


def _facts(row: Row, queue: QueueRow | None) -> dict[str, Any]:
    return {
        "handler": row.handler or None,
        "priority": row.priority,
        "attempt": row.attempts + 1,
        "attempts_max": None if queue is None or queue.retries >= ATTEMPTS_SHOWN_MAX else queue.retries + 1,
        "sent_at": iso_z(row.sent_at),
        "due": iso_z(row.due) if row.worker is None else None,
        "expires_at": None if row.expires is None else iso_z(row.expires),
        "error": error(row),
    }


def error(row: Row) -> str | None:
    """Return the last error in one line."""
    if row.error_class is None:
        return None
    return error_line(row.error_class, row.error_message, row.traceback)[:ERROR_TEXT_MAX]


# -- the decisions ----------------------------------------------------------------------------------------


def held(
    row: Row, holder: WorkerRow | None, alive: bool | None, started: int | None, queue: QueueRow | None, now: int
) -> Cause:
    """Return the finding for a leased message: by a worker that is alive or not, or by a client."""
    if row.worker == PULLED:
        if row.due <= now:
            return Cause("pulled", "A client pulled it and its lease has expired. The next worker releases it.", None)
        return Cause(
            "pulled", "A client pulled it. It is released when the lease expires, unless the client answers.", row.due
        )
    name = f"worker {row.worker}" if holder is None else f"worker {holder.id} (pid {holder.pid} on {holder.host})"
    if alive is False:
        return Cause(
            "worker_died", f"W{name[1:]} had claimed it and died. The next worker that starts or polls releases it."
        )
    if started == NOT_BEGUN:
        return Cause("claimed", f"W{name[1:]} has claimed it and starts it as soon as a slot is free.")
    limit = "" if queue is None else f" It is cancelled after {queue.timeout_seconds:g} s."
    return Cause("running", f"It runs in {name}.{limit}")


def obstacles(
    row: Row, queue: QueueRow | None, crowd: Crowd, serves: LiveWorkers, able: LiveWorkers, now: int
) -> list[Cause]:
    """Return everything that keeps a waiting message from running; at least one finding."""
    found = list(_for_an_operator(row, queue, serves, able))
    if row.due > now:
        return [_not_yet(row, queue), *found]
    if queue is not None and not found:
        found = list(_by_rule(row, queue, crowd, able, now))
    if crowd.ahead and not found:
        most = "or more " if crowd.ahead >= COUNTED_MAX else ""
        found.append(Cause("behind", f"{crowd.ahead:,} {most}messages of queue {row.queue} are claimed first."))
    return found or [Cause("ready", "Nothing blocks it: a worker claims it in a moment.", now)]


def _not_yet(row: Row, queue: QueueRow | None) -> Cause:
    if row.error_class is not None:
        tries = "" if queue is None or queue.retries >= ATTEMPTS_SHOWN_MAX else f" of {queue.retries + 1}"
        charged = "failed" if row.attempts else "was released uncharged"
        text = f"It {charged} and waits for attempt {row.attempts + 1}{tries}. The last error: {error(row)}"
        return Cause("backing_off", text, row.due)
    if row.rounds:
        return Cause("delayed", "Its handler asked for a later delivery.", row.due)
    return Cause("delayed", "It was sent with a delay.", row.due)


def _for_an_operator(row: Row, queue: QueueRow | None, serves: LiveWorkers, able: LiveWorkers) -> Iterator[Cause]:
    if queue is not None and queue.paused:
        yield Cause("paused", f"Queue {row.queue} is paused. Resume with: penstock queues resume {row.queue}")
    if not serves.total:
        gone = f" Worker {serves.gone[-1].id}, which did, died." if serves.gone else ""
        yield Cause("unserved", f"No process serves queue {row.queue}.{gone} Start one with: penstock run APP")
    elif not able.total:
        yield Cause(
            "unknown_type",
            f"No process that serves queue {row.queue} has a handler for {row.type}. If none starts, it becomes a dead "
            "letter.",
        )


def _by_rule(row: Row, queue: QueueRow, crowd: Crowd, able: LiveWorkers, now: int) -> Iterator[Cause]:
    rate = queue.rate_now
    if rate is not None and (queue.next_start > now or crowd.ahead):
        begins = max(now, queue.next_start) + crowd.ahead * interval_micros(rate)
        yield Cause("rate_limited", f"Queue {row.queue} starts at most {rate:g} a second{_after(crowd)}.", begins)
    if queue.wait_micros and crowd.first_due is not None:
        full = crowd.first_due + queue.wait_micros
        if full > now and crowd.ahead >= crowd.ready // queue.batch * queue.batch:
            there = f"{crowd.ready % queue.batch:,} of {queue.batch:,}"
            yield Cause("batching", f"Its batch has {there} messages and waits for more.", full)
    slots = queue.slots_most * able.total
    if crowd.leased >= slots * queue.batch:
        each = f"{queue.slots_most:,} in each of {able.total:,} processes" if able.total > 1 else f"{slots:,}"
        yield Cause("busy", f"All slots of queue {row.queue} are busy: {each}{_after(crowd)}.")
    elif crowd.suspects:
        yield Cause("waiting_for_suspect", "A message whose worker died before runs alone; the others wait for it.")


def _after(crowd: Crowd) -> str:
    return f", and {crowd.ahead:,} messages are claimed first" if crowd.ahead else ""
