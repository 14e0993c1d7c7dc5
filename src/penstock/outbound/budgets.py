"""Budgets: what paid calls may cost in a run, a day and a month, and when one that is spent is renewed."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta

from penstock.contracts.calls import NANOS, OverBudget, Share, Spent
from penstock.model.errors import BadApp, BadParameter, BudgetSpent
from penstock.model.times import day_of, from_micros, month_of, to_micros

USD_MAX = 1_000_000_000.0  # of one call or one budget; sums of such amounts still fit
SOON_SECONDS = 10.0  # what others have reserved is settled when their calls are done
RUN, DAY, MONTH = "run", "day", "month"
OF = " of "  # in the scope of a caller's own sums: `day of alice`


@dataclass(frozen=True, slots=True)
class Budgets:
    """Dollars that paid calls may cost: those of each run, of each day and of each month, in UTC. None is no bound."""

    run: float | None = None
    day: float | None = None
    month: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            usd = getattr(self, field.name)
            if usd is not None and not is_money(usd):
                raise BadApp(f"The budget of a {field.name} is {usd!r} dollars. Give a number from 0.")


def shares(budgets: Budgets, run: str | None, *, now: int, of: str | None = None) -> list[Share]:
    """Return the sums that a call made now is part of; with `of`, those of this caller alone."""
    whose = "" if of is None else f"{OF}{of}"
    found = [
        Share(f"{DAY}{whose}", day_of(now), _most(budgets.day)),
        Share(f"{MONTH}{whose}", month_of(now), _most(budgets.month)),
    ]
    if run is not None:
        found.append(Share(f"{RUN}{whose}", run, _most(budgets.run)))
    return found


def begins_anew(scope: str, now: int) -> datetime | None:
    """When the day or month ends that it is now; a run's budget is never filled again."""
    today = from_micros(now).replace(hour=0, minute=0, second=0, microsecond=0)
    match scope.partition(OF)[0]:
        case "day":
            return today + timedelta(days=1)
        case "month":
            return (today.replace(day=1) + timedelta(days=31)).replace(day=1)
    return None


def refusal(over: OverBudget, at_most: int, *, now: int) -> BudgetSpent:
    """The one of the spent budgets that keeps the call waiting longest."""
    found = [(_room_again(spent, at_most, now), spent) for spent in over.spent]
    until, (share, counted, passes) = max(found, key=lambda each: each[0] or datetime.max.replace(tzinfo=UTC))
    most = share.most or 0
    scope, of, whose = share.scope.partition(OF)
    what = f"the budget of run {share.period}" if scope == RUN else f"the budget of the {scope}"
    what += f" of {whose}" if of else ""
    text = f"A call that can cost {money(at_most)} exceeds {what}: {money(counted)} of {money(most)} is "
    text += "spent or reserved by running calls." if passes else "spent."
    if until is not None and not passes:
        text += f" It is renewed at {until.isoformat(' ', 'minutes')[:16]} UTC."
    return BudgetSpent(
        text,
        budget=share.scope,
        until=until,
        retry_after=None if until is None else (to_micros(until) - now) / 1_000_000,
        spent_usd=counted / NANOS,
        most_usd=most / NANOS,
        at_most_usd=at_most / NANOS,
    )


def _room_again(spent: Spent, at_most: int, now: int) -> datetime | None:
    """When to ask again: never, if the call is larger than the budget itself."""
    if spent.passes:
        return from_micros(now) + timedelta(seconds=SOON_SECONDS)
    return None if at_most > (spent.share.most or 0) else begins_anew(spent.share.scope, now)


def nanos(usd: float, what: str) -> int:
    if not is_money(usd):
        raise BadParameter(f"{what} is {usd!r}. Give dollars, a number from 0.", value=usd)
    return round(usd * NANOS)


def is_money(usd: object) -> bool:
    return isinstance(usd, int | float) and not isinstance(usd, bool) and math.isfinite(usd) and 0 <= usd <= USD_MAX


def money(amount: int) -> str:
    """`$0.0031`: cents, and further digits where there are any."""
    whole, _, digits = f"{amount / NANOS:,.9f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"


def _most(usd: float | None) -> int | None:
    return None if usd is None else round(usd * NANOS)
