"""One bad unit never harms another: a group that fails is halved until the bad unit is alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.contracts.effects import SealedUnit
from penstock.contracts.ledger import (
    Chores,
    ClaimRequest,
    Committed,
    Ledger,
    NotCommitted,
    RefusedUnits,
    RepeatedUnits,
    StaleUnits,
)
from penstock.model.errors import LeaseLost, StoreError


class CommitGroup(NamedTuple):
    """One transaction: units to commit, rows to claim, timers to fire and lapsed leases to take back at a time. `pull` is
    answered with what it brought the client outside that is among the claims."""

    units: list[SealedUnit]
    requests: Sequence[ClaimRequest] = ()
    chores: Chores = Chores()
    now: int = 0
    pull: asyncio.Future[Committed] | None = None


@dataclass(slots=True)
class GroupResult:
    """What became of each unit. `trouble` is the store's failure, if it had one; `left` are the units it kept from
    having an outcome."""

    commits: list[Committed] = field(default_factory=list)
    saved: list[SealedUnit] = field(default_factory=list)
    repeated: list[SealedUnit] = field(default_factory=list)
    failed: list[tuple[SealedUnit, Exception]] = field(default_factory=list)
    left: list[SealedUnit] = field(default_factory=list)
    trouble: Exception | None = None
    now: int = 0  # the time that the rows were given
    seconds: float = 0.0  # that it took


def commit_group(ledger: Ledger, group: CommitGroup) -> GroupResult:
    result = GroupResult(now=group.now)
    try:
        _commit(ledger, group, result)
    except Exception as error:
        answered = [*result.saved, *result.repeated, *(unit for unit, _ in result.failed)]
        result.left = without(group.units, answered)
        result.trouble = error
    return result


def _commit(ledger: Ledger, group: CommitGroup, result: GroupResult) -> None:
    units, requests, (sweep, fire), now, _ = group
    while True:
        try:
            result.commits.append(ledger.commit(units, requests, now=now, sweep=sweep, fire=fire))
        except StaleUnits as error:
            result.failed += [(unit, LeaseLost()) for unit in error.stale]
            units = without(units, error.stale)
        except RepeatedUnits as error:
            result.repeated += error.repeated
            units = without(units, error.repeated)
        except RefusedUnits as error:
            result.failed += error.refused
            units = without(units, [unit for unit, _ in error.refused])
        except (StoreError, NotCommitted):
            raise
        except Exception as error:
            if not units:
                raise
            if len(units) > 1:
                middle = len(units) // 2
                _commit(ledger, CommitGroup(units[:middle], now=now), result)
                units = units[middle:]
            else:
                result.failed.append((units[0], error))
                units = []
        else:
            result.saved += units
            return
        if not units and not requests and not sweep and not fire:
            return


def tell(committed: Committed) -> None:
    """Give the units and calls of a commit what it brought them."""
    for call, outcome in committed.outcomes:
        call.note(outcome)
    for unit, answer in committed.answers.items():
        unit.answer = answer


def without(units: list[SealedUnit], left_out: Sequence[SealedUnit]) -> list[SealedUnit]:
    gone = {id(unit) for unit in left_out}
    return [unit for unit in units if id(unit) not in gone]
