"""What one claim of 100 costs over a small and over a huge backlog, half of it delayed."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import apsw

from bench.load import QUEUE, listing
from bench.report import percentile
from penstock.contracts.effects import SealedUnit, Settle
from penstock.contracts.ledger import ClaimRequest
from penstock.contracts.store import Writer
from penstock.model.envelope import encode
from penstock.model.message import PRIORITY_NORMAL, Delivery, NewMessage, checksum
from penstock.model.outcome import RELEASED
from penstock.storage.sqlite.session import SQL
from penstock.storage.sqlite.store import SqliteStore

CLAIMED = 100
LEASE_MICROS = 930_000_000
HOUR_MICROS = 3_600_000_000
ROWS_A_TRANSACTION = 100_000
WARM_UP = 10  # claims that fill the caches and are not counted


@dataclass(slots=True)
class Backlog:
    """A database with so many waiting rows, and what each claim of 100 over it took."""

    rows: int
    path: Path
    seconds: list[float] = field(default_factory=list)
    cpu_seconds: list[float] = field(default_factory=list)

    @property
    def p50_ms(self) -> float:
        return 1000 * percentile(self.seconds, 0.5)

    @property
    def cpu_ms(self) -> float:
        return 1000 * percentile(self.cpu_seconds, 0.5)

    @property
    def p99_ms(self) -> float:
        return 1000 * percentile(self.seconds, 0.99)


def claim_costs(folder: Path, sizes: Sequence[int], claims: int) -> list[Backlog]:
    """Claims in turn over all backlogs, so that a slow minute of the disk slows them alike."""
    backlogs = [Backlog(rows, folder / f"backlog-{rows}.db") for rows in sizes]
    for backlog in backlogs:
        load(backlog)
    with ExitStack() as stack:
        writers = [stack.enter_context(closing(_open(backlog.path))) for backlog in backlogs]
        for number in range(claims + WARM_UP):
            for backlog, writer in zip(backlogs, writers, strict=True):
                began, cpu_began = time.perf_counter(), time.thread_time()
                claimed = _claim(writer)
                seconds, cpu_seconds = time.perf_counter() - began, time.thread_time() - cpu_began
                assert len(claimed) == CLAIMED, f"{len(claimed)} rows claimed of {backlog.rows}"
                if number >= WARM_UP:
                    backlog.seconds.append(seconds)
                    backlog.cpu_seconds.append(cpu_seconds)
                _hand_back(writer, claimed)
    return backlogs


def load(backlog: Backlog) -> None:
    """Fills a fresh file with the writer's own statement, unsynced: only the claims are measured."""
    _open(backlog.path).close()
    connection = apsw.Connection(str(backlog.path))
    connection.pragma("journal_mode", "off")
    connection.pragma("synchronous", "off")
    rows = waiting(backlog.rows)
    while portion := list(islice(rows, ROWS_A_TRANSACTION)):
        with connection:
            connection.executemany(SQL["sends.send"], portion)
    connection.close()


def waiting(count: int) -> Iterator[NewMessage]:
    """Rows sent one after the other: every second one is due, the others at a random moment within the next day."""
    now = _now()
    first = (now // 1000 - count) << 80 | 0x7 << 76 | 0x2 << 62
    chance = random.Random(count)
    for number in range(count):
        id = (first + (number << 80)).to_bytes(16, "big")
        sent_at = now - (count - number)
        due = sent_at if number % 2 else now + HOUR_MICROS + int(chance.random() * 23 * HOUR_MICROS)
        body = encode(listing(number))
        yield NewMessage(
            id=id,
            queue=QUEUE,
            priority=PRIORITY_NORMAL,
            due=due,
            type="listing.found",
            source="bench",
            correlation_id=id,
            causation_id=None,
            hops=0,
            depth=0,
            sent_at=sent_at,
            checksum=checksum(id, body),
            body=body,
            flags=0,
            expires=None,
        )


def _claim(writer: Writer) -> list[Delivery]:
    return writer.ledger.commit([], [ClaimRequest(QUEUE, CLAIMED, LEASE_MICROS)], now=_now(), sweep=False).claimed


def _hand_back(writer: Writer, claimed: list[Delivery]) -> None:
    """Outside the clock. The rows are due again behind all others, so the next claim finds fresh ones."""
    units = [SealedUnit("bench", [Settle(delivery, RELEASED)]) for delivery in claimed]
    writer.ledger.commit(units, [], now=_now(), sweep=False)


def _open(path: Path) -> Writer:
    return SqliteStore(path).open_writer(now=_now())


def _now() -> int:
    return time.time_ns() // 1000
