"""When something that repeats happens next: computed from its anchor, never twice and never skipped when clocks change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple, NoReturn

from penstock.model.errors import BadParameter
from penstock.model.schedule import Schedule
from penstock.model.times import MICROS, from_micros, to_micros
from penstock.model.zone import Zone
from penstock.recurrence import rrule
from penstock.recurrence.rrule import Rrule

COUNT_MAX, CRON_COUNT_MAX = 1_000, 200  # occurrences are counted one by one, those of cron slowly
EXCEPT_MAX = 400  # days are left out one by one
BEFORE_ALL = -(2**62)
PREVIEW = 5
MINUTE, DAY = 60 * MICROS, 86_400 * MICROS
_EVERY = re.compile(r"(?:(\d{1,6}) *)?(minute|hour|day|week|month|year)s?", re.IGNORECASE | re.ASCII)
_MINUTES = {"minute": 1, "hour": 60}
_DAYS = {"day": 1, "week": 7}
_MONTHS = {"month": 1, "year": 12}
_REAL_TIME = {"MINUTELY": "minutes", "HOURLY": "hours"}
_UNTIL = re.compile(r"(\d{8})(?:T(\d{6})(Z?))?", re.ASCII)


class Occurrence(NamedTuple):
    """A moment in microseconds since 1970, and which one of its rule it is: the first is 1. Without a count it is 0."""

    at: int
    number: int = 0

    def shown(self, zone: str) -> dict[str, str]:
        """Return the moment as local time and as UTC, in ISO 8601."""
        moment = from_micros(self.at)
        local = moment.astimezone(Zone(zone).place)
        return {"local": local.isoformat("T", "minutes"), "utc": moment.isoformat("T", "minutes")[:16] + "Z"}


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A rule: `{"cron": "0 9 * * 1-5"}`, `{"every": "3 days"}` or `{"rrule": "FREQ=MONTHLY;BYDAY=-1FR"}`.

    `starts` is the local wall time that it is counted from, `zone` the zone of that time. `until` is the last moment: a date
    (the whole day), a local time, or a time with a zone. `count` is the number of occurrences; `except_dates` are local days
    without one. Raises BadParameter or BadConfig with what to write instead.

    Minutes and hours of `every` follow real time. All else follows the wall clock: a time that clocks leap over happens
    right after the leap, one that comes twice happens the first time. `every` month from the 31st is the last day of shorter
    months; an RRULE skips these.
    """

    rule: Mapping[str, str]
    _: KW_ONLY
    starts: datetime
    zone: str = "UTC"
    until: date | datetime | None = None
    count: int | None = None
    except_dates: frozenset[date] = frozenset()
    _walls: Walls = field(init=False, repr=False, compare=False)
    _place: Zone = field(init=False, repr=False, compare=False)
    _until: int | None = field(init=False, repr=False, compare=False)
    _count: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.starts.tzinfo is not None:
            _refuse("starts", self.starts.isoformat(), "It is a local time: leave the zone out, `zone` names it")
        starts = self.starts.replace(second=0, microsecond=0)
        place = Zone(self.zone)
        match dict(self.rule):
            case {"cron": str(text), **rest} if not rest:
                read: Read = _Cron(Schedule(text, zone=self.zone), place.moment_of(starts) or 0), None, None
            case {"every": str(text), **rest} if not rest:
                read = _read_every(text, starts, place), None, None
            case {"rrule": str(text), **rest} if not rest:
                read = _read_rrule(text, starts, place)
            case wrong:
                _refuse("rule", wrong, 'Write {"cron": "0 9 * * 1-5"}, {"every": "3 days"} or {"rrule": "FREQ=DAILY"}')
        walls, until, count = read
        if (self.until and until) or (self.count and count):
            _refuse("until", self.rule, "The end is in the rule already: give it once")
        until, count = until if self.until is None else self.until, count if self.count is None else self.count
        most = CRON_COUNT_MAX if isinstance(walls, _Cron) else COUNT_MAX
        if count is not None and not 1 <= count <= most:
            _refuse("count", count, f"Write a number from 1 to {most:,}, or `until`")
        if len(self.except_dates) > EXCEPT_MAX:
            _refuse("except", f"{len(self.except_dates)} dates", f"At most {EXCEPT_MAX:,} days can be left out")
        for name, value in (("_place", place), ("_walls", walls), ("_until", _last(until, place)), ("_count", count)):
            object.__setattr__(self, name, value)

    def first(self) -> Occurrence:
        """Return the first occurrence from the start on. Raise BadParameter if the rule has none within a hundred years."""
        found = self.next_after(BEFORE_ALL)
        if found is None:
            year = min(self.starts.year + rrule.AHEAD_YEARS, 9_999)
            _refuse("rule", dict(self.rule), f"It has no occurrence before its end or before {year}: change its days")
        return found

    def next_after(self, moment: int, since: Occurrence | None = None) -> Occurrence | None:
        """Return the first occurrence later than this moment, or None after the last one.

        Those between are skipped. A rule with a count needs `since`, an occurrence before this moment, which tells how many
        there have been; without it they are counted from the start."""
        while (found := self._following(moment, since)) is not None:
            day = self._place.wall(found.at).date()
            if day not in self.except_dates:
                return found
            moment, since = found.at if self._count else _end_of(day, self._place), found
        return None

    def _following(self, moment: int, since: Occurrence | None) -> Occurrence | None:
        number, last = (0, BEFORE_ALL) if since is None else (since.number, since.at)
        if self._count is None:
            last = moment
        for at in self._moments(last):
            if at == last:
                continue  # two wall times that a leap made one moment
            last, number = at, number + 1
            if (self._until is not None and at > self._until) or (self._count is not None and number > self._count):
                return None
            if at > moment:
                return Occurrence(at, 0 if self._count is None else number)
        return None

    def upcoming(self, moment: int, most: int = PREVIEW, since: Occurrence | None = None) -> list[Occurrence]:
        """Return the next occurrences later than this moment."""
        found: list[Occurrence] = []
        while len(found) < most and (following := self.next_after(moment, since)) is not None:
            found.append(following)
            moment, since = following.at, following
        return found

    def _moments(self, after: int) -> Iterator[int]:
        """Yield moments later than this one, in order."""
        if isinstance(self._walls, _Cron | _RealTime):
            yield from self._walls.after(after)
            return
        is_before = after < to_micros(self.starts.replace(tzinfo=UTC)) - 2 * DAY
        # In the second pass of an hour that comes twice, the wall times ahead have happened in the first.
        for wall in self._walls.after(self.starts - timedelta(1) if is_before else self._place.wall(after)):
            at = self._place.moment_of(wall)
            if at is not None and at > after:
                yield at


class _Cron(NamedTuple):
    schedule: Schedule
    starts: int

    def after(self, moment: int) -> Iterator[int]:
        moment = max(moment, self.starts - 1)
        while True:
            try:
                moment = self.schedule.next_after(moment)
            except BadParameter:  # it names no minute within fifty years
                return
            yield moment


class _RealTime(NamedTuple):
    starts: int
    step: int

    def after(self, moment: int) -> Iterator[int]:
        number = max(0, (moment - self.starts) // self.step + 1)
        while True:
            yield self.starts + number * self.step
            number += 1


class _Every(NamedTuple):
    """Days or months of a wall clock."""

    starts: datetime
    days: int
    months: int

    def after(self, wall: datetime) -> Iterator[datetime]:
        months = (wall.year - self.starts.year) * 12 + wall.month - self.starts.month
        number = max(0, (wall - self.starts).days // self.days if self.days else months // self.months - 1)
        try:
            while True:
                if (found := self._at(number)) > wall:
                    yield found
                number += 1
        except (OverflowError, ValueError):  # beyond the calendar's end
            return

    def _at(self, number: int) -> datetime:
        if self.days:
            return self.starts + timedelta(number * self.days)
        years, month = divmod(self.starts.month - 1 + number * self.months, 12)
        first = self.starts.replace(year=self.starts.year + years, month=month + 1, day=1)
        length = ((first + timedelta(31)).replace(day=1) - first).days
        return first.replace(day=min(self.starts.day, length))


Walls = _Cron | _RealTime | _Every | Rrule
Read = tuple[Walls, date | None, int | None]  # and the end that the rule itself names


def _read_every(text: str, starts: datetime, place: Zone) -> _RealTime | _Every:
    found = _EVERY.fullmatch(text.strip())
    if found is None or not 1 <= int(found[1] or 1) <= rrule.INTERVAL_MAX:
        _refuse("every", text, "Write 1 to 1,000 minutes, hours, days, weeks, months or years, such as `3 days`")
    step, unit = int(found[1] or 1), found[2].lower()
    if unit in _MINUTES:
        return _RealTime(place.moment_of(starts) or 0, step * _MINUTES[unit] * MINUTE)
    return _Every(starts, step * _DAYS.get(unit, 0), step * _MONTHS.get(unit, 0))


def _read_rrule(text: str, starts: datetime, place: Zone) -> Read:
    parts = rrule.parts_of(text)
    until = _read_until(parts.pop("UNTIL")) if "UNTIL" in parts else None
    count = rrule.number("COUNT", parts.pop("COUNT"), COUNT_MAX) if "COUNT" in parts else None
    if until is not None and count is not None:
        rrule.refuse("UNTIL", text, "Write UNTIL or COUNT, not both.")
    if (unit := _REAL_TIME.get(parts.get("FREQ", ""))) is None:
        return rrule.read_rrule(parts, starts), until, count
    if more := sorted(set(parts) - {"FREQ", "INTERVAL", "WKST"}):
        rrule.refuse(more[0], parts[more[0]], f"Beside FREQ={parts['FREQ']} it is not known. Write a cron expression.")
    interval = rrule.number("INTERVAL", parts.get("INTERVAL", "1"), rrule.INTERVAL_MAX)
    return _read_every(f"{interval} {unit}", starts, place), until, count


def _read_until(text: str) -> date:
    found = _UNTIL.fullmatch(text)
    try:
        if found is None:
            raise ValueError("not a date")
        day = datetime.strptime(found[1] + (found[2] or ""), "%Y%m%d%H%M%S" if found[2] else "%Y%m%d")  # noqa: DTZ007
    except ValueError:
        rrule.refuse("UNTIL", text, "Write a day such as 20261231, or a time such as 20261231T090000Z.")
    return day.date() if found[2] is None else day.replace(tzinfo=UTC if found[3] else None)


def _last(until: date | None, place: Zone) -> int | None:
    """The last moment that an end allows."""
    if until is None:
        return None
    try:
        if not isinstance(until, datetime):
            return _end_of(until, place)
        return place.moment_of(until) if until.tzinfo is None else to_micros(until)
    except OverflowError:  # beyond the calendar's end, which is an end itself
        if until.year > 1:
            return None
        _refuse("until", until.isoformat(), "Write a later end")


def _end_of(day: date, place: Zone) -> int:
    """The last moment of a local day."""
    midnights = (
        datetime.combine(day, time.min) + timedelta(days) for days in (1, 2)
    )  # one of them may never have been
    return next(moment for midnight in midnights if (moment := place.moment_of(midnight)) is not None) - 1


def _refuse(field: str, value: object, instead: str) -> NoReturn:
    raise BadParameter(f"{field} cannot be {str(value)[:100]!r}. {instead}.", field=field, value=str(value)[:100])
