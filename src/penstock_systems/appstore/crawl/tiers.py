"""Which chart is read next: a roll of the dice over the tiers, and an order within each."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from penstock_systems.appstore.moments import after
from penstock_systems.appstore.settings import STALE_DAYS, TIER_WEIGHTS

TIER_OF = {"high": "high", "active": "high", "medium": "medium", "low": "low"}  # any other priority is not scanned
ERROR_HOURS = 1.0  # after the first error, doubling up to the tier's own period
EMPTY_HOURS = 24.0  # an empty chart may be a refusal in disguise


class Category(msgspec.Struct, frozen=True, kw_only=True):
    """A chart of one collection and one category, as `category_scans` keeps it."""

    id: int
    collection: str
    category: str
    priority: str
    sort_order: int = 0
    scanned_at: str | None = None
    attempts: int = 0


def order_of(roll: float) -> list[str]:
    """The tiers, the one that was rolled first. `roll` lies between 0 and 100."""
    tiers = list(TIER_WEIGHTS)
    reached = 0
    for tier in tiers:
        reached += TIER_WEIGHTS[tier]
        if roll < reached:
            return [tier, *(other for other in tiers if other != tier)]
    return [tiers[-1], *tiers[:-1]]


def within(due: Sequence[Category]) -> list[Category]:
    """Those that were never scanned first, then as they were put in order, then those scanned longest ago."""
    return sorted(due, key=lambda each: (each.scanned_at is not None, each.sort_order, each.scanned_at or "", each.id))


def choose(due: Sequence[Category], chance: Random, most: int) -> list[Category]:
    """At most so many of those that are due, each from the first tier of its own roll that has one left."""
    left = {tier: within([each for each in due if TIER_OF.get(each.priority) == tier]) for tier in TIER_WEIGHTS}
    chosen: list[Category] = []
    while len(chosen) < most and any(left.values()):
        tier = next(tier for tier in order_of(chance.uniform(0, 100)) if left[tier])
        chosen.append(left[tier].pop(0))
    return chosen


def next_scan(category: Category, now: str, *, failed: bool = False, empty: bool = False) -> str:
    """When the chart is due again. After an error it waits longer each time, and never longer than its tier does."""
    period_hours = 24.0 * STALE_DAYS[category.priority]
    if failed:
        return after(now, hours=min(ERROR_HOURS * 2**category.attempts, period_hours))
    return after(now, hours=EMPTY_HOURS if empty else period_hours)
