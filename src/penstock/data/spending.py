"""What paid calls have cost in a month, by whom and for what, and how much of each budget is left."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from penstock.contracts.calls import NANOS
from penstock.data.usage import Reading
from penstock.model.times import day_of, month_of, to_micros

KINDS_MAX = 1_000  # providers and operations that are told apart

SUMS = """
select service, scope, calls, reserved, settled
from penstock_spending
where (scope = 'month' and period = :month)
or (scope = 'day' and period = :day)
order by service
limit :most
"""
BY_KIND = """
select service, provider, operation, count(*) as calls, coalesce(sum(units), 0) as units, sum(cost) as cost,
  sum(case when is_known then 0 else cost end) as unknown
from (
  select service, provider, operation, units, cost,
    state in ('settled', 'released') or (state = 'reserved' and worker in (select id from penstock_workers)) as is_known
  from penstock_calls
  where created_at >= :since
  and created_at < :until
) as made
group by service, provider, operation
order by sum(cost) desc, service, provider, operation
limit :most
"""


class Limits(Protocol):
    """Dollars for a run, a day and a month; None is no bound."""

    @property
    def run(self) -> float | None: ...
    @property
    def day(self) -> float | None: ...
    @property
    def month(self) -> float | None: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """Calls of one operation. Of `usd`, `unknown_usd` is counted at its most since nobody knows what became of them."""

    service: str
    provider: str
    operation: str
    calls: int
    units: int
    usd: float
    unknown_usd: float


@dataclass(frozen=True, slots=True)
class Budget:
    """`used` holds what calls under way have reserved."""

    service: str
    budget: str
    most: float
    used: float

    @property
    def left(self) -> float:
        return max(0.0, round(self.most - self.used, 9))


@dataclass(frozen=True, slots=True)
class MonthSpending:
    month: str
    calls: int
    usd: float
    reserved_usd: float  # by calls that are under way, or whose process died
    kinds: tuple[Kind, ...]
    budgets: tuple[Budget, ...]


async def month_spending(
    reading: Reading, month: str, limits: Iterable[tuple[str, Limits]], *, now: int
) -> MonthSpending:
    """`limits` are the services of the app that looks, each with its budgets: the database does not know them."""
    rows = await reading.rows(SUMS, month=month, day=day_of(now), most=KINDS_MAX)
    sums = {(row.service, row.scope): row for row in rows}
    months = [row for row in rows if row.scope == "month"]
    since = datetime.fromisoformat(f"{month}-01").replace(tzinfo=UTC)
    until = (since + timedelta(days=31)).replace(day=1)
    kinds = await reading.rows(BY_KIND, since=to_micros(since), until=to_micros(until), most=KINDS_MAX)
    used = {key: (row.reserved + row.settled) / NANOS for key, row in sums.items()}
    budgets = [
        Budget(service, scope, most, 0.0 if scope == "run" else round(used.get((service, scope), 0.0), 9))
        for service, limit in limits
        for scope, most in (("run", limit.run), ("day", limit.day), ("month", limit.month))
        if most is not None and (scope != "day" or month == month_of(now))
    ]
    return MonthSpending(
        month,
        sum(row.calls for row in months),
        round(sum(row.reserved + row.settled for row in months) / NANOS, 9),
        round(sum(row.reserved for row in months) / NANOS, 9),
        tuple(_kind(*row) for row in kinds),
        tuple(budgets),
    )


def _kind(service: str, provider: str, operation: str, calls: int, units: int, cost: int, unknown: int) -> Kind:
    return Kind(service, provider, operation, calls, units, cost / NANOS, unknown / NANOS)
