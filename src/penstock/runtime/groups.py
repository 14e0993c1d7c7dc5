"""One bad unit never harms another: a group that fails is halved until the bad unit is alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.contracts.effects import SealedUnit
from penstock.contracts.ledger import (
    Committed,
    Ledger,
    NotCommitted,
    RefusedUnits,
    RepeatedUnits,
    Requests,
    StaleUnits,
    Units,
)
from penstock.model.errors import LeaseLost, StoreError


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


def commit_group(
    ledger: Ledger, units: Units, requests: Requests, *, now: int, sweep: bool, fire: bool = False
) -> GroupResult:
    result = GroupResult(now=now)
    try:
        _commit(ledger, list(units), requests, now, sweep, fire, result)
    except Exception as error:
        told = [*result.saved, *result.repeated, *(unit for unit, _ in result.failed)]
        result.left = without(list(units), told)
        result.trouble = error
    return result


def _commit(
    ledger: Ledger, units: list[SealedUnit], requests: Requests, now: int, sweep: bool, fire: bool, result: GroupResult
) -> None:
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
                _commit(ledger, units[:middle], (), now, False, False, result)
                units = units[middle:]
            else:
                result.failed.append((units[0], error))
                units = []
        else:
            result.saved += units
            return
        if not units and not requests and not sweep and not fire:
            return


def without(units: list[SealedUnit], left_out: Units) -> list[SealedUnit]:
    gone = {id(unit) for unit in left_out}
    return [unit for unit in units if id(unit) not in gone]
