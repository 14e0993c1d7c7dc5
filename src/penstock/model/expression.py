"""The five fields of a cron expression: which minutes of a wall clock they name, in sets, in words, and what is wrong."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, NoReturn

from penstock.model.errors import BadConfig, BadParameter

_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_YEARS_AHEAD = 50  # a 29 February on one weekday comes at least every 40 years
_TIMES_LISTED = 6  # times of day are named one by one up to here, by their minutes and hours beyond
_TEXT_MAX = 300  # every value of every field written out stays below


class _Field(NamedTuple):
    name: str
    first: int
    last: int
    names: tuple[str, ...] = ()  # three letters each, as written; the first stands for `first`

    def __str__(self) -> str:
        return self.name


_MINUTE = _Field("minute", 0, 59)
_HOUR = _Field("hour", 0, 23)
_DAY = _Field("day of month", 1, 31)
_MONTH = _Field("month", 1, 12, tuple("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()))
_WEEKDAY = _Field("day of week", 0, 6, tuple("SUN MON TUE WED THU FRI SAT".split()))
_FIELDS = (_MINUTE, _HOUR, _DAY, _MONTH, _WEEKDAY)

_MONTHS = ("", *"January February March April May June July August September October November December".split())
_WEEKDAYS = tuple("Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split())
_TERM = re.compile(r"(?P<all>\*)|(?P<low>[A-Z0-9]+)(?:-(?P<high>[A-Z0-9]+))?", re.ASCII)
_DIGITS = re.compile(r"\d{1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Expression:
    """What `30 6 * * MON-FRI` means. Sunday is 0; each set is in order and without repeats."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]
    either_day: bool  # both day fields are given, so a day that fits one of them will do: the rule of every cron
    at_fixed_times: bool  # hours and minutes are named, as in a daily job; else it follows real time, as `*/15` does

    @staticmethod
    def parse(text: str) -> Expression:
        return _parse(text)

    def next_wall(self, after: datetime) -> datetime:
        """The first minute later than `after` that the fields name. Both are what a wall clock shows, without a zone."""
        try:
            start = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
            for day in self._days_from(start.date()):
                earliest = (start.hour, start.minute) if day == start.date() else (0, 0)
                for hour in self.hours:
                    for minute in self.minutes if hour >= earliest[0] else ():
                        if (hour, minute) >= earliest:
                            return datetime.combine(day, time(hour, minute))
        except OverflowError:
            pass  # the calendar ends with the year 9999: said below
        raise BadParameter(f"`{self.text}` names no minute after {after.isoformat(' ')}.", value=after)

    @property
    def shortest_gap_minutes(self) -> int:
        """Between two fires on days that follow each other; a clock that is changed does not count."""
        times = [hour * 60 + minute for hour in self.hours for minute in self.minutes]
        return min(later - earlier for earlier, later in pairwise((*times, times[0] + 24 * 60)))

    def describe(self) -> str:
        """`at 06:30 on Monday to Friday`"""
        when, often = self._times_in_words()
        day = self._days_in_words()
        months = f"in {_listed(self.months, _MONTHS)}" if len(self.months) < 12 else ""
        return " ".join(part for part in (when, day or ("" if often else "every day"), months) if part)

    def _days_from(self, day: date) -> Iterator[date]:
        last_year = day.year + _YEARS_AHEAD
        while day.year <= last_year:
            if day.month not in self.months:
                day = (day.replace(day=1) + timedelta(days=32)).replace(day=1)
                continue
            if self._fits(day):
                yield day
            day += timedelta(days=1)

    def _fits(self, day: date) -> bool:
        of_month, of_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return of_month or of_week if self.either_day else of_month and of_week

    def _times_in_words(self) -> tuple[str, bool]:
        """When in a day, and whether it is so often that "every day" need not be said."""
        step = _step(self.minutes, 60)
        if len(self.hours) == 24:
            if step:
                return ("every minute" if step == 1 else f"every {step} minutes"), True
            if self.minutes == (0,):
                return "every hour on the hour", True
            return f"at {_counted('minute', self.minutes)} of every hour", True
        if len(self.hours) * len(self.minutes) <= _TIMES_LISTED:
            return "at " + _joined([f"{hour:02}:{minute:02}" for hour in self.hours for minute in self.minutes]), False
        if step:
            minutes = "every minute" if step == 1 else f"every {step} minutes"
        else:
            minutes = f"at {_counted('minute', self.minutes)}"
        return f"{minutes} of {_counted('hour', self.hours)}", False

    def _days_in_words(self) -> str:
        of_month = f"on {_counted('day', self.days)} of the month" if len(self.days) < 31 else ""
        of_week = f"on {_listed(self.weekdays, _WEEKDAYS)}" if len(self.weekdays) < 7 else ""
        return (" or " if self.either_day else ", if it falls ").join(part for part in (of_month, of_week) if part)


@lru_cache(maxsize=1_000)
def _parse(text: str) -> Expression:
    written = text.strip()
    fields = _ALIASES.get(written.lower(), written).upper().split()
    _refuse_wrong_shape(text, written, fields)
    minutes, hours, days, months, weekdays = (_values(field, part) for field, part in zip(_FIELDS, fields, strict=True))
    # A field that starts with a star leaves the choice of the day to the other one, also as `*/2`.
    either_day = not fields[2].startswith("*") and not fields[4].startswith("*")
    longest = max(29 if month == 2 else calendar.monthrange(2001, month)[1] for month in months)
    if min(days) > longest and not either_day:
        shown = _listed(months, _MONTHS)
        _refuse(
            _DAY,
            fields[2],
            f"{shown}: no month here has more than {longest} days, so it would never fire. Name another day",
        )
    at_fixed_times = not fields[0].startswith("*") and not fields[1].startswith("*")
    return Expression(written, minutes, hours, days, months, weekdays, either_day, at_fixed_times)


def _refuse_wrong_shape(text: str, written: str, fields: list[str]) -> None:
    if written.startswith("@") and len(fields) != 5:
        known = ", ".join(_ALIASES)
        raise BadConfig(
            f"{text!r} is no schedule. Of the names with @ there are {known}.", field="expression", value=text
        )
    if len(fields) == 5 and len(text) <= _TEXT_MAX:
        return
    way_out = "Write minute, hour, day of month, month and day of week, such as `*/5 * * * *`"
    if len(fields) == 6:
        way_out = f"A sixth one for seconds or years is not known: a minute is the finest step. {way_out}"
    if len(fields) == 5:
        way_out = f"Its text is longer than {_TEXT_MAX} characters. Use ranges and steps"
    raise BadConfig(
        f"The schedule {text[:_TEXT_MAX]!r} has {len(fields)} fields. {way_out}.", field="expression", value=text
    )


def _values(field: _Field, text: str) -> tuple[int, ...]:
    return tuple(sorted({value for term in text.split(",") for value in _term(field, text, term)}))


def _term(field: _Field, text: str, term: str) -> Iterator[int]:
    span, slash, step_text = term.partition("/")
    found = _TERM.fullmatch(span)
    if found is None:
        _refuse(field, text, _way_out(field, term))
    low, high = field.first, field.last
    if not found["all"]:
        low = _value(field, text, found["low"])
        # `5/15` means from 5 on, so a single value with a step reaches to the end of the field.
        high = _value(field, text, found["high"], ends=True) if found["high"] else (field.last if slash else low)
    if low > high:
        turned = f"{found['low']}-{_name(field, field.last)},{_name(field, field.first)}-{found['high']}"
        _refuse(field, text, f"the range {span} runs backwards. Write {turned}")
    step = 1
    if slash:
        if not _DIGITS.fullmatch(step_text) or not 1 <= int(step_text) <= field.last - field.first + 1:
            count = field.last - field.first + 1
            _refuse(
                field, text, f"the step {step_text!r} is no number from 1 to {count}. A step starts anew in each round"
            )
        step = int(step_text)
    for value in range(low, high + 1, step):
        yield value % 7 if field is _WEEKDAY else value


def _value(field: _Field, text: str, word: str, *, ends: bool = False) -> int:
    if word in field.names:
        value = field.names.index(word) + field.first
        return 7 if ends and field is _WEEKDAY and value == 0 else value  # SAT-SUN is a weekend
    # Sunday is 0 and also 7, as in every cron.
    last = 7 if field is _WEEKDAY else field.last
    if not _DIGITS.fullmatch(word) or not field.first <= int(word) <= last:
        _refuse(field, text, _way_out(field, word))
    return int(word)


def _name(field: _Field, value: int) -> str:
    return field.names[value - field.first] if field.names else str(value)


def _way_out(field: _Field, word: str) -> str:
    if word == "?":
        return "`?` is of another cron. Write `*`"
    names = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
    if word in {"L", "LW", "W"} or "#" in word:
        names += "; to run on the last day, run daily and let the task look at the date"
    return f"{word or 'nothing'!r} is none of {field.first} to {field.last}{names}. Join several with commas, 1-5 is a range"


def _refuse(field: _Field, value: str, why: str) -> NoReturn:
    raise BadConfig(f"The {field} of a schedule is wrong in `{value}`: {why}.", field=field.name, value=value)


def _step(values: tuple[int, ...], whole: int) -> int:
    """The even step that the values make around the whole, or 0."""
    steps = {later - earlier for earlier, later in pairwise((*values, values[0] + whole))}
    return steps.pop() if len(steps) == 1 and values[0] == 0 and len(values) > 1 else 0


def _counted(noun: str, values: tuple[int, ...]) -> str:
    return f"{noun}{'s' if len(values) > 1 else ''} {_listed(values)}"


def _listed(values: tuple[int, ...], names: tuple[str, ...] | None = None) -> str:
    """`1, 3 to 5 and 9`, with three or more in a row as a range."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    spoken = [str(value) if names is None else names[value] for value in range(max(values) + 1)]
    words: list[str] = []
    for run in runs:
        words += [f"{spoken[run[0]]} to {spoken[run[-1]]}"] if len(run) > 2 else [spoken[value] for value in run]
    return _joined(words)


def _joined(words: list[str]) -> str:
    return " and ".join(part for part in (", ".join(words[:-1]), words[-1]) if part)
