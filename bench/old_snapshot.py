"""What a claim costs on PostgreSQL while somebody holds an old snapshot: a report that runs for an hour, a forgotten
transaction. Until it ends nothing that was claimed or settled since is cleaned away, from no table and no index.

Messages flow at a steady rate, each sent, claimed and settled, first without the snapshot and then with it. Timed is what a
claim does inside its transaction: the commit waits for the disk, which would hide the rest.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg

from bench.backlog import waiting
from bench.load import QUEUE
from bench.place import Place
from bench.report import percentile
from penstock.contracts.effects import SealedUnit, Settle
from penstock.contracts.ledger import ClaimRequest
from penstock.contracts.store import Writer
from penstock.model.outcome import DONE
from penstock.storage.postgres.store import PostgresStore

PER_SECOND = 800
TICK_SECONDS = 0.01  # each sends its share and claims what is due
CLAIMED_MAX = 100
LEASE_MICROS = 930_000_000
HOLD = "begin isolation level repeatable read; select 1"


@dataclass(frozen=True, slots=True)
class Aged:
    """Milliseconds of a claim, p50, without the snapshot and at the end of its time: up to its commit, and with it.
    `per_second` is what really flowed."""

    normal_ms: float
    aged_ms: float
    normal_commit_ms: float
    aged_commit_ms: float
    per_second: float

    @property
    def ratio(self) -> float:
        """The worse of both: a slow disk would hide what a claim costs, and what its commit does beside it counts too."""
        return max(self.aged_ms / self.normal_ms, self.aged_commit_ms / self.normal_commit_ms)


@dataclass(slots=True)
class Stopwatch:
    """Stands where faults are injected, and notes how long a transaction took up to its commit."""

    began: float = 0.0
    seconds: float = 0.0

    def at(self, point: str) -> None:
        if point == "commit.begun":
            self.began = time.perf_counter()
        elif point == "commit.before":
            self.seconds = time.perf_counter() - self.began


@dataclass(slots=True)
class Flow:
    """Seconds of each claim, up to its commit and with it."""

    claims: list[float] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)
    messages: int = 0


def claims_under_an_old_snapshot(place: Place, *, normal_seconds: float, seconds: float) -> Aged:
    watch = Stopwatch()
    writer = PostgresStore(place.database, faults=watch).open_writer(now=_now())
    try:
        normal = _flow(writer, watch, normal_seconds)
        with _old_snapshot(place):
            first = _flow(writer, watch, seconds - normal_seconds)
            aged = _flow(writer, watch, normal_seconds)
    finally:
        writer.close()
    return Aged(
        _half_ms(normal.claims),
        _half_ms(aged.claims),
        _half_ms(normal.commits),
        _half_ms(aged.commits),
        (first.messages + aged.messages) / seconds,
    )


def _half_ms(seconds: list[float]) -> float:
    return 1000 * percentile(seconds, 0.5)


@contextmanager
def _old_snapshot(place: Place) -> Iterator[None]:
    with psycopg.connect(place.database, autocommit=True) as holder:
        holder.execute(HOLD)
        yield


def _flow(writer: Writer, watch: Stopwatch, seconds: float) -> Flow:
    """A machine that is too slow for it has fewer messages."""
    rows = list(waiting(int(seconds * PER_SECOND)))
    share = int(PER_SECOND * TICK_SECONDS)
    flow = Flow()
    ends = time.perf_counter() + seconds
    for start in range(0, len(rows), share):
        tick = time.perf_counter() + TICK_SECONDS
        sent = SealedUnit("bench")
        now = _now()
        sent.effects += [row._replace(due=now) for row in rows[start : start + share]]
        writer.ledger.commit([sent], [], now=now, sweep=False)
        began = time.perf_counter()
        claimed = writer.ledger.commit(
            [], [ClaimRequest(QUEUE, CLAIMED_MAX, LEASE_MICROS)], now=_now(), sweep=False
        ).claimed
        flow.commits.append(time.perf_counter() - began)
        flow.claims.append(watch.seconds)
        units = [SealedUnit("bench", [Settle(delivery, DONE)]) for delivery in claimed]
        writer.ledger.commit(units, [], now=_now(), sweep=False)
        flow.messages += len(units)
        if time.perf_counter() > ends:
            break
        time.sleep(max(0.0, tick - time.perf_counter()))
    return flow


def _now() -> int:
    return time.time_ns() // 1000
