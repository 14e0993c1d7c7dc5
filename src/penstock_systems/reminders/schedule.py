"""When a reminder is due: its due time, its rule, and the occurrence after a moment."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, date, datetime
from typing import Any, NamedTuple, NoReturn

import msgspec

import penstock as ps
from penstock.data import parse_span
from penstock.recurrence import Occurrence, Recurrence

MINUTE_MS = 60_000
SECONDS_MAX = 10 * 366 * 86_400  # how far ahead "in ..." reaches
YEAR_LEAST, YEAR_MOST = 1900, 9000  # of `at`: a zone and an alarm move it further
_IN = re.compile(r"in +(.+)", re.IGNORECASE)


class Ends(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a recurrence that is stored beside its start and its zone."""

    rule: dict[str, str]
    until: str | None = None
    count: int | None = None
    except_dates: tuple[str, ...] = ()


class Due(NamedTuple):
    """The first occurrence, the local time that a rule is counted from, and the rule as it is stored."""

    at: int  # milliseconds
    number: int
    starts: str
    stored: str | None


def read_schedule(
    at: str | None,
    zone: str,
    now: int,
    *,
    rule: dict[str, str] | None = None,
    until: str | None = None,
    count: int | None = None,
    except_dates: Iterable[str] = (),
) -> Due:
    """Check a schedule and find its first occurrence that is not in the past. Raise BadParameter if it has none."""
    starts = local_time(at, check_zone(zone), now)
    if rule is None:
        if until or count or tuple(except_dates):
            _refuse("rule", None, "until, count and except belong to a rule. Write one, such as {'every': '1 day'}")
        moment = _exact(at, now)
        return Due(moment if moment is not None else moment_of(starts, zone), 0, _text(starts), None)
    ends = Ends(rule=rule, until=until, count=count, except_dates=tuple(except_dates))
    recurrence = make_recurrence(ends, starts, zone)
    first: Occurrence | None = recurrence.first()
    if first is not None and first.at // 1000 < now - now % MINUTE_MS:
        first = recurrence.next_after(now * 1000)
    if first is None:
        _refuse("rule", rule, "All its occurrences are in the past: change `until`, `count` or `at`")
    return Due(first.at // 1000, first.number, _text(starts), msgspec.json.encode(ends).decode())


def next_occurrence(row: Any, now: int) -> Occurrence | None:
    """The first occurrence of a stored reminder that is later than now and than its present one; None after the last."""
    recurrence = stored_recurrence(row)
    if recurrence is None:
        return None
    since = Occurrence(row.occurrence_at * 1000, row.count_done)
    return recurrence.next_after(max(now, row.occurrence_at) * 1000, since if row.count_done else None)


def due_at(row: Any) -> int:
    """When the present fire of a stored reminder was to be sent: a snooze lies between two occurrences."""
    found: int = row.snoozed_until if row.extra == "snooze" and row.snoozed_until else row.occurrence_at
    return found


def stored_recurrence(row: Any) -> Recurrence | None:
    """The rule of a stored reminder, or None for one that is due once."""
    if row.recurrence_rule is None:
        return None
    ends = msgspec.json.decode(row.recurrence_rule, type=Ends)
    return make_recurrence(ends, datetime.fromisoformat(row.starts), row.timezone)


def make_recurrence(ends: Ends, starts: datetime, zone: str) -> Recurrence:
    try:
        days = frozenset(map(date.fromisoformat, ends.except_dates))
    except ValueError:
        _refuse("except", list(ends.except_dates), "Write days such as 2026-12-24")
    until: date | datetime | None = None
    if ends.until is not None:
        try:
            until = date.fromisoformat(ends.until) if len(ends.until) == 10 else datetime.fromisoformat(ends.until)
        except ValueError:
            _refuse("until", ends.until, "Write a day such as 2026-12-31, or a time such as 2026-12-31T09:00")
    try:
        return Recurrence(ends.rule, starts=starts, zone=zone, until=until, count=ends.count, except_dates=days)
    except ps.BadConfig as error:  # of a cron expression
        raise ps.errors.BadParameter(str(error), field="rule") from error


def span_ms(text: str, field: str) -> int:
    """The milliseconds of a duration such as `10m`, or BadParameter."""
    try:
        return round(parse_span(text) * 1000)
    except ps.BadConfig as error:
        raise ps.errors.BadParameter(f"{field}: {error}", field=field) from error


def check_zone(zone: str) -> str:
    """Return a time zone that exists, or raise BadParameter with a similar name."""
    try:
        Occurrence(0).shown(zone)
    except ps.BadConfig as error:
        raise ps.errors.BadParameter(str(error), field="zone") from error
    return zone


def moment_of(local: datetime, zone: str) -> int:
    """The moment of a local time, in milliseconds; one that clocks leap over is right after the leap."""
    return Recurrence({"every": "1 day"}, starts=local, zone=zone).first().at // 1000


def local_time(at: str | None, zone: str, now: int) -> datetime:
    """A due time as local time, to the minute."""
    moment = now if at is None else _exact(at, now)
    if moment is None:
        return datetime.fromisoformat(str(at)).replace(second=0, microsecond=0)
    shown = Occurrence(moment * 1000).shown(zone)["local"]
    return datetime.fromisoformat(shown).replace(tzinfo=None)


def _exact(at: str | None, now: int) -> int | None:
    """The moment of `in 2h` or of a time with a zone; None for a local time."""
    if at is None:
        return now
    if found := _IN.fullmatch(at.strip()):
        ahead = span_ms(found[1], "at")
        if ahead > SECONDS_MAX * 1000:
            _refuse("at", at, "The maximum is 10 years ahead")
        return now + ahead
    try:
        moment = datetime.fromisoformat(at.strip())
        if not YEAR_LEAST <= moment.year <= YEAR_MOST:
            _refuse("at", at, f"The year is {YEAR_LEAST} to {YEAR_MOST}")
        return None if moment.tzinfo is None else round(moment.astimezone(UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        _refuse("at", at, "Write a local time such as 2026-12-24T18:00, one with a zone, or `in 2h`")


def _text(local: datetime) -> str:
    return local.isoformat(timespec="minutes")


def _refuse(field: str, value: object, instead: str) -> NoReturn:
    raise ps.errors.BadParameter(f"{field} cannot be {str(value)[:100]!r}. {instead}.", field=field)
