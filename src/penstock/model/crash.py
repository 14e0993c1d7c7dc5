"""What becomes of each row that a dead worker held: who is suspected, who goes free."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from penstock.model.outcome import Again, Dead, Failure
from penstock.model.retry import Retry


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
    "WallLimit", "the handler ran past its wall limit and could not be stopped, so its process was killed"
)
LAPSED = Failure("LeaseLapsed", "it was pulled, and neither acknowledged nor given back within its visibility time-out")
FREE = Verdict(0, Again(0.0, charged=False))


def verdict(
    row: HeldRow, *, started: Collection[int] | None, charged: Collection[int], crashes_max: int, retry: Retry
) -> Verdict:
    """`started` None means nobody can tell what had begun, so everything is suspected."""
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
    """Somebody outside took it and did not answer in time: that is a failure like any other, and it waits for nobody."""
    if retry.exhausted(row.attempts + 1):
        return Verdict(0, Dead("exhausted", LAPSED))
    return Verdict(0, Again(0.0, failure=LAPSED))
