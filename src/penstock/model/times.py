"""One time format: UTC text to the second in users' tables, integer microseconds in the engine's, ISO in messages."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from penstock.model.errors import BadConfig, BadParameter

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
Span = float | timedelta  # a number is seconds
MICROS = 1_000_000  # microseconds in a second

_TEXT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.ASCII)
_SPAN = re.compile(
    "".join(rf"(?:(?P<{unit}>\d{{1,9}}(?:\.\d{{1,6}})?){unit})?" for unit in ("w", "d", "h", "m", "s", "ms")), re.ASCII
)
_UNIT_SECONDS = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def to_text(moment: datetime) -> str:
    """`2026-11-15 09:30:00`, in UTC. Text of this form sorts and compares like the times it stands for."""
    _require_zone(moment)
    try:
        return moment.astimezone(UTC).isoformat(" ", "seconds")[:19]
    except OverflowError as why:
        raise BadParameter(f"The time {moment.isoformat()} is outside the calendar in UTC.", value=moment) from why


def from_text(text: str) -> datetime:
    """The time that `to_text` wrote. Any other form is refused, since it would not compare with the rest."""
    if _TEXT.fullmatch(text):
        try:
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        except ValueError:
            pass  # a 13th month or the like: refused below with every other wrong text
    raise BadParameter(f"{text!r} is not a stored time. The format is 'YYYY-MM-DD HH:MM:SS', in UTC.", value=text)


def to_micros(moment: datetime) -> int:
    """Microseconds since 1970, exact: no float on the way."""
    _require_zone(moment)
    return (moment - _EPOCH) // _MICROSECOND


def from_micros(micros: int) -> datetime:
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError as why:
        raise BadParameter(f"{micros} microseconds since 1970 lie outside the calendar.", value=micros) from why


def iso_z(micros: int) -> str:
    """`2026-11-15T09:30:00.123Z`, for messages and APIs. Always with milliseconds, so that it sorts as text."""
    return from_micros(micros).isoformat("T", "milliseconds")[:23] + "Z"


def text_of_micros(micros: int) -> str:
    """The engine's time as users' tables write it."""
    return from_micros(micros).isoformat(" ", "seconds")[:19]


def day_of(micros: int) -> str:
    """`2026-11-15`"""
    return text_of_micros(micros)[:10]


def month_of(micros: int) -> str:
    """`2026-11`, the period that costs are added up over."""
    return text_of_micros(micros)[:7]


def parse_span(text: str) -> float:
    """Seconds in `90s`, `2h30m`, `6d` or `1.5h`: units from the largest to the smallest, each at most once."""
    found = _SPAN.fullmatch(text.strip())
    if not text.strip() or found is None:
        raise BadConfig(
            f"{text!r} is not a duration. Write a number and a unit (w, d, h, m, s, ms), larger units first: 2h30m.",
            value=text,
        )
    return sum(float(number) * _UNIT_SECONDS[unit] for unit, number in found.groupdict().items() if number)


def older_than(span: str | float | timedelta, *, now: int) -> str:
    """The bound for "older than": `where seen_at is null or seen_at < :bound` finds what is stale or never happened.

    `now` is the clock's, in microseconds. The bound is stored text, so that text is compared with text of one form.
    A row is found up to a second late and never early, because stored times are cut to the second.
    """
    return text_of_micros(now - round(in_seconds(span) * MICROS))


def _require_zone(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise BadParameter(
            f"The time {moment.isoformat()} has no time zone. Give it one: `datetime.now(UTC)`.", value=moment
        )


def in_seconds(span: str | float | timedelta) -> float:
    """Return a span as seconds; a text has the form of `2h30m`."""
    match span:
        case str():
            return parse_span(span)
        case timedelta():
            return span.total_seconds()
        case _:
            return span
