"""What will be, by arithmetic: when a queue is empty at the pace of the last minutes, and when a budget is used up."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.contracts.history import SettledCount
from penstock.model.times import iso_z
from penstock.views.view import Row

MINUTE = 60_000_000
WINDOW = 10  # minutes from which a pace is taken; the one that still runs counts by its part
HORIZON_DAYS = 30  # further ahead nothing is said


def of_queue(row: Row, counts: Sequence[SettledCount], now: int, *, arrivals_per_minute: float = 0.0) -> Row:
    """Return when a queue is empty: what is due, less what ends, plus what arrives. `empty_at` is None where it grows."""
    done = done_per_minute(counts, now)
    limit = None if row["rate"] is None else row["rate"] * 60
    pace = done if limit is None else limit
    net = pace - arrivals_per_minute if row["served_by"] else 0.0
    due = row["ready"] + row["leased"]
    minutes = None if net <= 0 or row["paused"] else due / net
    is_far = minutes is not None and minutes > HORIZON_DAYS * 1_440
    return {
        "due": due,
        "done_per_minute": round(pace, 3),
        "empty_at": None if minutes is None or is_far or not due else iso_z(now + int(minutes * MINUTE)),
        "minutes": None if minutes is None or is_far else round(minutes, 2),
    }


def done_per_minute(counts: Sequence[SettledCount], now: int) -> float:
    """Return how many deliveries ended well a minute, over the minutes since the first of them, at most ten."""
    first = now - WINDOW * MINUTE
    recent = [each for each in counts if each.status == "acked" and each.minute + MINUTE > first]
    if not recent:
        return 0.0
    began = max(first, min(each.minute for each in recent))
    return sum(each.messages for each in recent) / max(0.25, (now - began) / MINUTE)


def reached_at(used: float, most: float, since: int, now: int) -> str | None:
    """Return when a ceiling is reached at the pace since `since`; None where that is further than a month ahead."""
    spent = now - since
    if used <= 0 or spent <= 0 or used >= most:
        return None
    left = (most - used) / (used / spent)
    return iso_z(now + int(left)) if left < HORIZON_DAYS * 86_400_000_000 else None
