"""Paid calls: what one may cost is reserved before it is made and settled after it, each in a commit of its own. A price
that is unknown counts as the highest."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.contracts.calls import NANOS, RELEASED, SETTLED, UNKNOWN, CallEnd, NewCall, OverBudget, Share
from penstock.model.errors import BadParameter, Gone, Refused, Throttled, Unavailable
from penstock.model.ids import correlation_of
from penstock.outbound.budgets import Budgets, nanos, refusal, shares
from penstock.runtime.unit import current_unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine

NAME_MAX = 200  # characters of a provider, an operation or a run
UNITS_MAX = 2**53
# Answers by which a service says that it has done nothing, and ways not to have reached it at all.
NOTHING_DONE = frozenset({503, 529})
NOT_REACHED = frozenset({"dns"})


class PaidCall:
    """A call that is being made. `settle` says what it cost; `release` that it certainly cost nothing."""

    def __init__(self, id: str, at_most: int) -> None:
        self.id = id
        self.at_most_usd = at_most / NANOS
        self.end: CallEnd | None = None

    def settle(self, *, usd: float, units: float | None = None) -> None:
        """What it cost. More than `at_most` is counted all the same: it was spent."""
        if units is not None and not (0 <= units <= UNITS_MAX and units == int(units)):
            raise BadParameter(f"units is {units!r}. Give a whole number from 0.", value=units)
        self.end = CallEnd(SETTLED, None if units is None else int(units), nanos(usd, "usd"))

    def release(self) -> None:
        """It was not made, or certainly cost nothing."""
        self.end = CallEnd(RELEASED, 0, 0)


class Gateway:
    """The way to whatever costs money. Each call is a row of `api_calls_ledger`; none is made that its budgets do not
    hold, however many handlers and processes ask at once."""

    def __init__(self, opened: Callable[[], Awaitable[Engine]], service: str, budgets: Budgets) -> None:
        self._opened = opened
        self.service = service
        self.budgets = budgets

    @asynccontextmanager
    async def paid(
        self,
        *,
        provider: str,
        operation: str,
        at_most: float,
        run: str | None = None,
        correlation: str | None = None,
        caller: tuple[str, Budgets] | None = None,
    ) -> AsyncIterator[PaidCall]:
        """`async with gateway.paid(provider="search", operation="web_search", at_most=0.005) as call:` around one call that
        costs at most that many dollars. Raises `BudgetSpent` before it is made. Inside, say `call.settle(usd=...)`.

        A block that raises `Throttled`, `Refused` or `Gone` has cost nothing. One that ends in any other way without
        `settle` counts at its most, as does one whose process dies. `correlation` names the chain that the call belongs to,
        by default that of the message that is being handled. `caller` is a name with budgets of its own, which the call has
        to fit as well."""
        named = None if caller is None else caller[0]
        for name, value in (("provider", provider), ("operation", operation), ("run", run), ("caller", named)):
            if value is not None and (not value or len(value) > NAME_MAX or not value.isprintable()):
                raise BadParameter(f"{name} is {value!r}: 1 to {NAME_MAX} printable characters.", value=value)
        wanted = nanos(at_most, "at_most")
        engine = await self._opened()
        unit = current_unit.get()
        if unit is not None and unit.engine is engine and unit.closed:
            raise unit.refusal  # between the steps of a workflow, where it would be paid for again at every replay
        origin = None if unit is None or unit.engine is not engine else unit.origin
        correlation_id = None if origin is None else origin.correlation_id
        if correlation is not None:
            correlation_id = correlation_of(correlation)
        new = NewCall(engine.ids.new(), self.service, provider, operation, run, correlation_id, wanted)
        now = engine.clock.now()
        parts = shares(self.budgets, run, now=now)
        if caller is not None:
            parts += shares(caller[1], run, now=now, of=caller[0])
        try:
            await engine.in_writer(engine.writer.calls.reserve, new, parts, now=now)
        except OverBudget as over:
            raise refusal(over, wanted, now=now) from None
        call = PaidCall(new.id.hex(), wanted)
        try:
            yield call
        except (Exception, asyncio.CancelledError) as error:
            if call.end is None and costs_nothing(error):
                call.release()
            await _settle(engine, new, parts, call)
            raise
        await _settle(engine, new, parts, call)


def costs_nothing(error: BaseException) -> bool:
    """Whether it is certain that the service did nothing that it asks money for."""
    match error:
        case Throttled() | Refused() | Gone() | BadParameter():
            return True
        case Unavailable():
            return error.facts.get("status") in NOTHING_DONE or error.facts.get("reason") in NOT_REACHED
    return False


async def _settle(engine: Engine, new: NewCall, parts: list[Share], call: PaidCall) -> None:
    """The writer does it even if the waiting caller is cancelled. Of an app that was closed meanwhile the reservation
    stays, and counts."""
    if not engine.is_open:
        return
    end = call.end or CallEnd(UNKNOWN, None, new.at_most)
    await engine.in_writer(engine.writer.calls.settle, new, parts, end, now=engine.clock.now())
