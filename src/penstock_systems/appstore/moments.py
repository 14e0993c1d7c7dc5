"""Times as the tables keep them, `YYYY-MM-DD HH:MM:SS` in UTC: later ones, days, and the days in between."""

from __future__ import annotations

from datetime import datetime, timedelta

DAY_SECONDS = 86_400.0


def after(now: str, *, seconds: float = 0.0, hours: float = 0.0, days: float = 0.0) -> str:
    """So much later than `now`; earlier with numbers below zero."""
    moved = datetime.fromisoformat(now) + timedelta(seconds=seconds, hours=hours, days=days)
    return moved.isoformat(" ", "seconds")


def day_of(now: str, *, days: int = 0) -> str:
    """`2026-11-15`, or the day so many days later."""
    return after(now, days=days)[:10]


def days_between(earlier: str, later: str) -> float:
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / DAY_SECONDS
