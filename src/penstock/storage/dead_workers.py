"""Releases the rows that a dead or stopped worker held, inside a transaction that is already open."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.contracts.workers import Returned
from penstock.model.outcome import Again, Dead, Failure
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.storage.dead_letters import settle_failure
from penstock.storage.session import PULLED, Session
from penstock.storage.tally import Tally


class HeldRow(NamedTuple):
    seq: int
    token: int
    queue: str
    attempts: int
    crashes: int


class Verdict(NamedTuple):
    """`crashed` is what is added to the row's crashes; the settlement says where it goes."""

    crashed: int
    settlement: Again | Dead


WORKER_DIED = Failure("WorkerDied", "the worker process died while it ran this")
OVERRAN = Failure(
    "HandlerTimeout", "the handler exceeded its timeout and could not be stopped, so its process was killed"
)
LAPSED = Failure("LeaseLapsed", "it was pulled, and neither acknowledged nor released within its visibility timeout")
FREE = Verdict(0, Again(0.0, charged=False))


def verdict(
    row: HeldRow, *, started: Collection[int] | None, charged: Collection[int], crashes_max: int, retry: Retry
) -> Verdict:
    """`started` None means that it is unknown what had begun, so everything is suspected."""
    if row.seq in charged:
        attempt = row.attempts + 1
        if retry.exhausted(attempt):
            return Verdict(0, Dead("exhausted", OVERRAN))
        return Verdict(0, Again(retry.delay_seconds(attempt), failure=OVERRAN))
    if charged or (started is not None and row.seq not in started):
        return FREE
    if row.crashes + 1 >= crashes_max:
        return Verdict(1, Dead("worker_died", WORKER_DIED, charged=False))
    return Verdict(1, Again(0.0, charged=False))


def lapsed_pull(row: HeldRow, retry: Retry) -> Verdict:
    """Charge a client that did not answer in time: that is a failure like any other."""
    if retry.exhausted(row.attempts + 1):
        return Verdict(0, Dead("exhausted", LAPSED))
    return Verdict(0, Again(0.0, failure=LAPSED))


@dataclass(slots=True)
class ReturnedRows:
    released: int = 0
    suspected: int = 0
    charged: int = 0
    dead: int = 0

    def counts(self, tally: Tally) -> Returned:
        return Returned(self.released, self.suspected, self.charged, self.dead, tuple(tally.deaths))


def return_rows(
    session: Session,
    worker: int,
    tally: Tally,
    *,
    started: Collection[int] | None,
    charged: Collection[int] = (),
    lapsed_by: int | None = None,
    now: int,
    number: int,
) -> ReturnedRows:
    returned = ReturnedRows()
    rules = _rules(session)
    for row in _held(session, worker, lapsed_by):
        crashes_max, retry = rules.get(row.queue, _DEFAULT_RULES)
        if worker == PULLED:
            judged = lapsed_pull(row, retry)
        else:
            judged = verdict(row, started=started, charged=charged, crashes_max=crashes_max, retry=retry)
        settle_failure(
            session, row.seq, row.token, judged.settlement, tally, now=now, number=number, crashed=judged.crashed
        )
        if isinstance(judged.settlement, Dead):
            returned.dead += 1
        elif judged.settlement.charged:
            returned.charged += 1
        elif judged.crashed:
            returned.suspected += 1
        else:
            returned.released += 1
    return returned


def _held(session: Session, worker: int, lapsed_by: int | None) -> Iterator[HeldRow]:
    """In pages: each page is empty of the rows before it, because they were released."""
    statement = "workers.held" if lapsed_by is None else "workers.lapsed"
    while page := session.rows(statement, {"worker": worker, "lapsed_by": lapsed_by}):
        yield from map(HeldRow._make, page)


_DEFAULT_RULES = (QueueSettings("default").crashes_max, Retry())


def _rules(session: Session) -> dict[str, tuple[int, Retry]]:
    rows: list[Any] = session.rows("workers.queue_rules")
    return {name: (crashes_max, Retry(retries, first, longest)) for name, crashes_max, retries, first, longest in rows}
