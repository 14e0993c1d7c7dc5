"""What a month has used, by task and by statement, and what that would cost at a platform's prices."""

from __future__ import annotations

from calendar import monthrange
from typing import Protocol

import msgspec

from penstock.model.errors import BadParameter
from penstock.model.forecast import Forecast, Sample, forecast
from penstock.model.prices import RATES, Bill, Rates, Usage, cost, metered
from penstock.model.row import Row
from penstock.model.sql_files import load
from penstock.model.times import day_of, month_of
from penstock.model.usage import USAGE

SQL = load("penstock.data", "data.sql")
QUEUES_MAX = 10_000  # as many as an app may have
STATEMENTS_MAX = 1_000  # the dearest; totals count all of them

OF_QUEUE = "queue:"  # before the name of a queue, where a task would stand


class Reading(Protocol):
    """Whatever can run a query: the user's database, or a file that is only looked at."""

    async def rows(self, sql: str, given: object = None, /, **named: object) -> list[Row]: ...


class UsedBy(msgspec.Struct, frozen=True):
    """What a task, or one of its statements, has used. `rows_read` is an estimate that is never too low."""

    task: str
    statement: str
    executions: int
    rows_read: int
    rows_written: int
    pages: int
    seconds: float


class MonthUsage(msgspec.Struct, frozen=True):
    month: str
    total: Usage
    bill: Bill
    tasks: tuple[UsedBy, ...]
    statements: tuple[UsedBy, ...]
    queues: dict[str, int]  # the operations of each: a message is written, read and deleted, in parts of 64 KB

    @property
    def usd(self) -> float:
        return self.bill.usd


async def size(reading: Reading, size_bytes: int, *, cap_bytes: int | None, now: int) -> Forecast:
    """Return the size now and its forecast, from the one sample a day that workers take."""
    samples = [Sample(*row) for row in await reading.rows(SQL["sizes"])]
    return forecast([*samples, Sample(now, size_bytes)], cap_bytes=cap_bytes)


async def month_usage(reading: Reading, month: str | None, *, now: int, rates: Rates = RATES) -> MonthUsage:
    month = month or month_of(now)
    days = _days(month, now)
    total = metered(tuple(row) for row in await reading.rows(USAGE["used"], month=month))
    tasks = [_spent(row) for row in await reading.rows(SQL["tasks"], month=month, most=STATEMENTS_MAX)]
    statements = [_spent(row) for row in await reading.rows(SQL["statements"], month=month, most=STATEMENTS_MAX)]
    used = {
        row.task.removeprefix(OF_QUEUE): row.executions
        for row in await reading.rows(SQL["queues"], month=month, most=QUEUES_MAX)
    }
    return MonthUsage(month, total, cost(total, rates, days=days), tuple(tasks), tuple(statements), used)


def _days(month: str, now: int) -> int:
    """Days of the month that have begun: what is free by the day has come about on each of them."""
    if month == month_of(now):
        return int(day_of(now)[8:])
    try:
        year, _, number = month.partition("-")
        if len(year) != 4 or len(number) != 2:
            raise ValueError
        return monthrange(int(year), int(number))[1]
    except ValueError:
        raise BadParameter(f"{month!r} is not a month. Write it like 2026-11.", value=month) from None


def _spent(row: Row) -> UsedBy:
    return UsedBy(
        row.task, row.statement, row.executions, row.rows_read, row.rows_written, row.pages, row.micros / 1_000_000
    )
