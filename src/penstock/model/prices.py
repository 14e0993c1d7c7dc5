"""What metered usage costs: a pure sum over rates that are data, so that a bill can be checked and a price changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.model.limits import GB, HOUR, KB

MILLION = 1_000_000
DAYS_IN_MONTH = 30

OPERATION_BYTES = 64 * KB  # a queue counts one operation for each such part of a body
METERED = "penstock:"  # the mark of what is no statement


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Prices in US dollars and what is free. Override any of them: `Rates(rows_read_usd=0.002)`.

    The source contradicts itself about rows read. It says 25 billion a month are included on the paid plan, which would
    make its own bill of 19.6 billion free; it bills them at $19.63, with nothing free; and its formula for how they
    came about gives 90.7 billion. The default is its rate with its free 5 million a day. Set
    `rows_read_included_per_month` for the paid plan, or `rows_read_free_per_day=0` for its bill.
    """

    # Prices are per million unless the name says otherwise.
    requests_free_per_day: int = 100_000
    requests_usd: float = 0.30
    rows_read_free_per_day: int = 5_000_000
    rows_read_included_per_month: int = 0
    rows_read_usd: float = 0.001
    # Not stated as a rate: 82 million rows written are billed at about $0.82.
    rows_written_usd: float = 0.01
    queue_operations_free_per_month: int = 1_000_000
    queue_operations_usd: float = 0.40
    blob_reads_free_per_month: int = 10_000_000
    blob_reads_usd: float = 0.36
    blob_writes_free_per_month: int = 1_000_000
    blob_writes_usd: float = 4.50  # not in the source; the platform's list price
    blob_storage_usd_per_gb_month: float = 0.015
    object_requests_usd: float = 12.50
    # Not stated as a rate: about 45 hours of objects are billed at about $0.56.
    object_usd_per_hour: float = 0.0125
    metric_writes_free_per_day: int = 100_000
    metric_writes_usd: float = 0.25  # not in the source, which never leaves the free part; the platform's list price


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a period used. Workflow steps are free and so not here; `blob_bytes` is what was stored on average."""

    requests: int = 0
    rows_read: int = 0
    rows_written: int = 0
    queue_operations: int = 0
    blob_reads: int = 0
    blob_writes: int = 0
    blob_bytes: int = 0
    object_requests: int = 0
    object_seconds: float = 0.0
    metric_writes: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in _USAGE})


class Line(msgspec.Struct, frozen=True):
    """One kind of usage: how much there was, how much of it was charged, and for how many dollars."""

    name: str
    used: float
    charged: float
    usd: float


class Bill(msgspec.Struct, frozen=True):
    lines: tuple[Line, ...]

    @property
    def usd(self) -> float:
        return sum(line.usd for line in self.lines)

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.name == name)


RATES = Rates()
# As if nothing were free: what a ceiling is measured by, for what is free is shared by all who run.
GROSS = Rates(**{name: 0 for name in Rates.__struct_fields__ if "_free_" in name})
_USAGE = Usage.__struct_fields__


def metered(sums: Iterable[tuple[Any, ...]]) -> Usage:
    """What was metered, from rows of (kind, executions, rows read, rows written, microseconds).

    Statements have no kind. What is no statement is metered under a mark in its place, `penstock:queue_operations`, with
    its number as executions; objects have the time in which they were at work too."""
    total = Usage()
    for kind, *numbers in sums:
        executions, rows_read, rows_written, micros = map(int, numbers)
        match kind.removeprefix(METERED):
            case "":
                total += Usage(rows_read=rows_read, rows_written=rows_written)
            case "object_requests":
                total += Usage(object_requests=executions, object_seconds=micros / MILLION)
            case name if name in _USAGE:
                total += Usage(**{name: executions})
    return total


def cost(usage: Usage, rates: Rates = RATES, *, days: float = DAYS_IN_MONTH) -> Bill:
    """The bill for `days` of one month. What is free by the day grows with them; what is free by the month does not."""
    gb_months = usage.blob_bytes / GB * days / DAYS_IN_MONTH
    priced = {
        "blob_bytes": gb_months * rates.blob_storage_usd_per_gb_month,
        "object_seconds": usage.object_seconds / HOUR * rates.object_usd_per_hour,
    }
    free = {
        "requests": rates.requests_free_per_day * days,
        "rows_read": rates.rows_read_free_per_day * days + rates.rows_read_included_per_month,
        "queue_operations": rates.queue_operations_free_per_month,
        "blob_reads": rates.blob_reads_free_per_month,
        "blob_writes": rates.blob_writes_free_per_month,
        "metric_writes": rates.metric_writes_free_per_day * days,
    }
    lines = []
    for name, used in msgspec.structs.asdict(usage).items():
        charged = used if name in priced else max(0, used - free.get(name, 0))
        usd = priced[name] if name in priced else charged / MILLION * getattr(rates, f"{name}_usd")
        lines.append(Line(name, used, charged, usd))
    return Bill(tuple(lines))
