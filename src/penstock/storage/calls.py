"""Paid calls and the sums they are part of. A sum is one row, changed only where it stays within its bound."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.contracts.calls import CallEnd, NewCall, OverBudget, Share, Spent
from penstock.storage.session import StoredPart, in_transaction

NO_BOUND = 2**62  # more billionths of a dollar than there are dollars


class StoredCalls(StoredPart):
    @in_transaction
    def reserve(self, call: NewCall, shares: Sequence[Share], *, now: int) -> None:
        spent: list[Spent] = []
        # In one order everywhere: two processes that change the same sums must not wait for each other.
        for share in sorted(shares):
            row = {"service": call.service, "scope": share.scope, "period": share.period}
            most = NO_BOUND if share.most is None else share.most
            counted = row | {"at_most": call.at_most, "most": most, "now": now}
            if call.at_most > most or not self._session.change("calls.count", counted):
                spent.append(self._spent(share, row, call.at_most, most))
        if spent:
            raise OverBudget(spent=spent)
        self._session.change("calls.reserve", call._asdict() | {"worker": self._session.worker, "now": now})

    def _spent(self, share: Share, row: dict[str, Any], at_most: int, most: int) -> Spent:
        found: list[Any] = self._session.rows("calls.sum", row)
        settled, reserved = found[0] if found else (0, 0)
        passes = settled + at_most <= most and self._session.value("calls.under_way", row) is not None
        return Spent(share, settled + reserved, passes)

    @in_transaction
    def settle(self, call: NewCall, shares: Sequence[Share], end: CallEnd, *, now: int) -> None:
        if not self._session.change("calls.settle", end._asdict() | {"id": call.id, "now": now}):
            return
        for share in sorted(shares):
            row = {"service": call.service, "scope": share.scope, "period": share.period}
            self._session.change("calls.settle_sum", row | {"at_most": call.at_most, "cost": end.cost})
