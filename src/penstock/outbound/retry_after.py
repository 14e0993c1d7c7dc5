"""`Retry-After`: how long a server asks its caller to wait, as seconds or as a date."""

from __future__ import annotations

import re
from email.utils import parsedate_to_datetime

from penstock.model.times import from_micros

SECONDS_LEAST = 1.0  # a server that always answers 0 would be called in a tight loop
SECONDS_MAX = 86_400.0  # who asks for more is asked again tomorrow
_CHARACTERS_MAX = 60

_SECONDS = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?", re.ASCII)


def seconds_to_wait(header: str | None, *, now: int) -> float | None:
    """How long the server asks us to wait from `now` on, or None where it says nothing that can be read."""
    text = (header or "").strip()
    if _SECONDS.fullmatch(text):
        # Any number of digits: a float has no limit to its text, and infinity is cut like a century.
        return _bounded(float(text))
    if not text or len(text) > _CHARACTERS_MAX:
        return None
    try:
        moment = parsedate_to_datetime(text)
        # A date without a zone is meant in UTC, as HTTP has it.
        until = moment.replace(tzinfo=from_micros(0).tzinfo) if moment.tzinfo is None else moment
        return _bounded((until - from_micros(now)).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, SECONDS_LEAST), SECONDS_MAX)
