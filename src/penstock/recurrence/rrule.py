"""RRULEs of RFC 5545: the wall times that one names, or a sentence that says what to write instead."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from typing import NoReturn

from penstock.model.errors import BadParameter

BYTES_MAX = 8_192
AHEAD_YEARS = 100  # a rule without an occurrence for so long has none
DAYS_MAX = 10_000  # that are looked at for one occurrence
INTERVAL_MAX = 1_000
TIMES_MAX = 100  # times of a day that one rule may name

FREQUENCIES = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_INSTEAD = {
    "BYSECOND": "A minute is the finest step. Leave it out.",
    "BYWEEKNO": "Weeks of the year are not supported. Write the months and days, such as BYMONTH=1;BYDAY=1MO.",
    "BYYEARDAY": "Days of the year are not supported. Write BYMONTH and BYMONTHDAY.",
    "BYEASTER": "Easter is not supported. Import the days as single events.",
    "RSCALE": "Only the Gregorian calendar is supported. Leave RSCALE and SKIP out.",
    "SKIP": "Only the Gregorian calendar is supported. Leave RSCALE and SKIP out.",
}
# The numbers that each part takes, without a sign and with one.
_NUMBERS = {"BYMONTH": (1, 12, False), "BYMONTHDAY": (1, 31, True), "BYSETPOS": (1, 366, True)}
_NUMBERS |= {"BYHOUR": (0, 23, False), "BYMINUTE": (0, 59, False)}
_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")


@dataclass(frozen=True, slots=True)
class Rrule:
    """A rule and the wall time that it starts at. `periods` are its days, weeks, months or years, INTERVAL apart."""

    starts: datetime
    frequency: str
    interval: int = 1
    months: frozenset[int] = frozenset()
    monthdays: frozenset[int] = frozenset()
    weekdays: frozenset[int] = frozenset()
    nth_weekdays: frozenset[tuple[int, int]] = frozenset()  # (2, 0) is the second Monday
    positions: tuple[int, ...] = ()
    week_start: int = 0
    times: tuple[timedelta, ...] = field(default=())  # of a day, in order

    def after(self, wall: datetime) -> Iterator[datetime]:
        """Yield the wall times from the start on that are later than this one, in order.

        It ends a hundred years later, or where 10,000 days in a row hold none."""
        wall = max(wall, self.starts - timedelta(microseconds=1))
        last = self._period_of(date(min(wall.year + AHEAD_YEARS, 9_999), wall.month, 1))
        period, examined = self._period_of(wall.date()), 0
        while period <= last and examined <= DAYS_MAX:
            days = self._days(period)
            examined += len(days)
            for found in self._occurrences(days):
                if found > wall:
                    examined = 0
                    yield found
            period = max(period + 1, self._next_period_in_months(days))

    def _next_period_in_months(self, days: Sequence[date]) -> int:
        """Days and weeks outside the months of the rule are skipped together."""
        if not days or not self.months or days[-1].month in self.months or self.frequency not in ("DAILY", "WEEKLY"):
            return 0
        day = days[-1]
        later = next(month for month in range(day.month + 1, day.month + 13) if (month - 1) % 12 + 1 in self.months)
        year, month = day.year + (later - 1) // 12, (later - 1) % 12 + 1
        return self._period_of(date(min(year, 9_999), month, 1))

    def _occurrences(self, days: Sequence[date]) -> list[datetime]:
        fitting = [datetime.combine(day, time.min) for day in days if self._fits(day)]
        found = [day + offset for day in fitting for offset in self.times]
        if self.positions:
            at = {position - 1 if position > 0 else len(found) + position for position in self.positions}
            found = [found[index] for index in sorted(at) if 0 <= index < len(found)]
        return [each for each in found if each >= self.starts]

    def _period_of(self, day: date) -> int:
        """The number of the period that holds this day, or of the last one before it."""
        start = self.starts.date()
        match self.frequency:
            case "DAILY":
                distance = (day - start).days
            case "WEEKLY":
                distance = (self._week_of(day) - self._week_of(start)).days // 7
            case "MONTHLY":
                distance = (day.year - start.year) * 12 + day.month - start.month
            case _:
                distance = day.year - start.year
        return max(0, distance // self.interval)

    def _week_of(self, day: date) -> date:
        return day - timedelta((day.weekday() - self.week_start) % 7)

    def _days(self, period: int) -> list[date]:
        """The days of a period, without months that the rule does not name."""
        start, distance = self.starts.date(), period * self.interval
        try:
            match self.frequency:
                case "DAILY":
                    return [start + timedelta(distance)]
                case "WEEKLY":
                    week = self._week_of(start) + timedelta(7 * distance)
                    return [week + timedelta(number) for number in range(7)]
                case "MONTHLY":
                    years, month = divmod(start.month - 1 + distance, 12)
                    return self._days_of(start.year + years, month + 1)
                case _:
                    months = sorted(self.months or range(1, 13))
                    return [day for month in months for day in self._days_of(start.year + distance, month)]
        except (OverflowError, ValueError):  # beyond the calendar's end
            return []

    def _days_of(self, year: int, month: int) -> list[date]:
        if self.months and month not in self.months:
            return []
        return [date(year, month, number) for number in range(1, _month_length(year, month) + 1)]

    def _fits(self, day: date) -> bool:
        if (self.months and day.month not in self.months) or (self.weekdays and day.weekday() not in self.weekdays):
            return False
        if not (self.monthdays or self.nth_weekdays):
            return True
        length = _month_length(day.year, day.month)
        if self.monthdays and day.day not in self.monthdays and day.day - length - 1 not in self.monthdays:
            return False
        return not self.nth_weekdays or not self.nth_weekdays.isdisjoint(self._nths(day, length))

    def _nths(self, day: date, month_length: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The second Monday and the last but two, of the month or of the year."""
        if self.frequency == "YEARLY" and not self.months:
            number, length = day.timetuple().tm_yday, 366 if calendar.isleap(day.year) else 365
        else:
            number, length = day.day, month_length
        return ((number - 1) // 7 + 1, day.weekday()), (-((length - number) // 7 + 1), day.weekday())


def _month_length(year: int, month: int) -> int:
    return 29 if month == 2 and calendar.isleap(year) else _LENGTHS[month - 1]


def parts_of(text: str) -> dict[str, str]:
    """Return the parts of a rule by name. COUNT, UNTIL and frequencies below a day are the caller's."""
    if len(text.encode("utf-8", "replace")) > BYTES_MAX:
        refuse("", text[:40], f"It is longer than {BYTES_MAX:,} bytes. Split it into several reminders.")
    parts: dict[str, str] = {}
    for part in filter(None, text.strip().upper().removeprefix("RRULE:").rstrip("; \r\n").split(";")):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name in _INSTEAD:
            refuse(name, part, _INSTEAD[name])
        if not equals or not value or name in parts:
            refuse(name, part, "Write each part once, as NAME=VALUE, with `;` between: FREQ=WEEKLY;BYDAY=MO,WE.")
        parts[name] = value
    known = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYDAY", *_NUMBERS}
    if unknown := sorted(set(parts) - known):
        refuse(unknown[0], unknown[0], f"Known parts are {', '.join(sorted(known))}.")
    return parts


def read_rrule(parts: Mapping[str, str], starts: datetime) -> Rrule:
    """Return the rule that these parts make, or raise BadParameter."""
    frequency = parts.get("FREQ", "")
    if frequency == "SECONDLY":
        refuse("FREQ", frequency, 'A minute is the finest step. Write {"every": "1 minute"}.')
    if frequency not in FREQUENCIES:
        refuse("FREQ", frequency, f"Write one of {', '.join(FREQUENCIES)}.")
    sets = {name: _numbers(name, parts[name]) for name in _NUMBERS if name in parts}
    months, monthdays = (frozenset(sets.get(name, ())) for name in ("BYMONTH", "BYMONTHDAY"))
    weekdays, nth_weekdays = _weekdays(
        parts.get("BYDAY", ""), frequency, 53 if frequency == "YEARLY" and not months else 5
    )
    if not (weekdays or nth_weekdays or monthdays):  # then the start says which day it is
        weekdays = frozenset({starts.weekday()} if frequency == "WEEKLY" else ())
        monthdays = frozenset({starts.day} if frequency in ("MONTHLY", "YEARLY") else ())
        months = months or frozenset({starts.month} if frequency == "YEARLY" else ())
    hours, minutes = sets.get("BYHOUR", [starts.hour]), sets.get("BYMINUTE", [starts.minute])
    times = sorted({timedelta(hours=hour, minutes=minute) for hour in hours for minute in minutes})
    if len(times) > TIMES_MAX:
        refuse("BYHOUR", f"{len(times)} times a day", 'Write {"every": "5 minutes"}, or a cron expression.')
    if "BYSETPOS" in sets and not set(parts) & {"BYDAY", "BYMONTHDAY", "BYMONTH", "BYHOUR", "BYMINUTE"}:
        refuse("BYSETPOS", parts["BYSETPOS"], "It picks from what another part names. Add BYDAY or BYMONTHDAY.")
    week_start = parts.get("WKST", "MO")
    if week_start not in DAYS:
        refuse("WKST", week_start, f"Write one of {', '.join(DAYS)}.")
    return Rrule(
        starts.replace(second=0, microsecond=0),
        frequency,
        number("INTERVAL", parts.get("INTERVAL", "1"), INTERVAL_MAX),
        months,
        monthdays,
        weekdays,
        nth_weekdays,
        tuple(sets.get("BYSETPOS", ())),
        DAYS.index(week_start),
        tuple(times),
    )


def number(name: str, text: str, most: int) -> int:
    """Return the number that a part holds, or raise BadParameter."""
    if not re.fullmatch("[0-9]{1,9}", text) or not 1 <= int(text) <= most:
        refuse(name, text, f"Write a number from 1 to {most:,}.")
    return int(text)


def _numbers(name: str, text: str) -> list[int]:
    least, most, signed = _NUMBERS[name]
    found = []
    for part in text.split(","):
        if not re.fullmatch(r"[+-]?\d{1,3}", part, re.ASCII) or (part[0] == "-" and not signed):
            refuse(name, part, f"Write numbers from {least} to {most}{', or -1 for the last' if signed else ''}.")
        if not least <= abs(int(part)) <= most:
            refuse(name, part, f"Write numbers from {least} to {most}{', or -1 for the last' if signed else ''}.")
        found.append(int(part))
    return found


def _weekdays(text: str, frequency: str, most: int) -> tuple[frozenset[int], frozenset[tuple[int, int]]]:
    plain, nth = set(), set()
    for part in filter(None, text.split(",")):
        found = _DAY.fullmatch(part)
        if found is None:
            refuse("BYDAY", part, "Write days such as MO or -1FR.")
        day = DAYS.index(found[2])
        if found[1] is None:
            plain.add(day)
        elif frequency not in ("MONTHLY", "YEARLY"):
            refuse("BYDAY", part, f"A number before a day needs FREQ=MONTHLY or YEARLY. Write {found[2]}.")
        elif not 1 <= abs(int(found[1])) <= most:
            refuse("BYDAY", part, f"Write numbers from 1 to {most}, or -1 for the last.")
        else:
            nth.add((int(found[1]), day))
    if plain and nth:
        refuse("BYDAY", text, "Give all days a number, or none: the days without one need a rule of their own.")
    return frozenset(plain), frozenset(nth)


def refuse(name: str, value: str, instead: str) -> NoReturn:
    shown = f"The part {name} of an RRULE" if name else "An RRULE"
    raise BadParameter(f"{shown} cannot be {value[:100]!r}. {instead}", field="rrule", value=value[:100])
