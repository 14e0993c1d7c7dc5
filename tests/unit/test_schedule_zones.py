"""In every time zone a daily job runs once a local day, and a quarter-hourly one every real quarter of an hour.

The normal run takes one zone of each set of clock changes and a few more by its seed, and looks around the changes.
PENSTOCK_ALL_ZONES=1 takes all zones day by day, and one of each set of changes quarter by quarter, over ten years.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from random import Random
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.model.schedule import Schedule
from penstock.model.times import MICROS, from_micros, to_micros

ALL = os.environ.get("PENSTOCK_ALL_ZONES") == "1"
MINUTE = 60 * MICROS
HOUR = 60 * MINUTE
DAY = 24 * HOUR
BEGIN = to_micros(datetime(2026, 1, 1, tzinfo=UTC))
END = to_micros(datetime(2036, 1, 1, tzinfo=UTC))
Changes = tuple[int, ...]


@cache
def changes(zone: str) -> tuple[tuple[int, timedelta | None], ...]:
    """When the clock is changed in these ten years, and the offset from then on."""
    place = ZoneInfo(zone)

    def offset(micros: int) -> timedelta | None:
        return from_micros(micros).astimezone(place).utcoffset()

    found = [(BEGIN, offset(BEGIN))]
    for day in range(BEGIN, END, 4 * DAY):
        low, high = day, min(day + 4 * DAY, END)
        if offset(high) == offset(low):
            continue
        while high - low > MINUTE:
            middle = (low + high) // 2 // MINUTE * MINUTE
            low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
        found.append((high, offset(high)))
    return tuple(found)


def moments(zone: str) -> list[int]:
    return [at for at, _ in changes(zone)[1:]]


def one_of_each() -> list[str]:
    """The first zone of each set of changes."""
    zones: dict[object, str] = {}
    for zone in sorted(available_timezones()):
        if moments(zone):
            zones.setdefault(changes(zone), zone)
    return sorted(zones.values())


def chosen(seed: int) -> list[str]:
    known = sorted(available_timezones())
    return known if ALL else sorted(Random(seed).sample([*one_of_each(), *known], 20))


def local_days(schedule: Schedule, fires: Iterable[int]) -> Counter[date]:
    place = ZoneInfo(schedule.zone)
    return Counter(from_micros(fire).astimezone(place).date() for fire in fires)


def days_that_are_not_once(schedule: Schedule, first: date, last: date) -> list[str]:
    place = ZoneInfo(schedule.zone)
    after = to_micros(datetime.combine(first, time(), tzinfo=place).astimezone(UTC)) - 1
    until = to_micros(datetime.combine(last + timedelta(days=1), time(), tzinfo=place).astimezone(UTC)) - 1
    counted = local_days(schedule, schedule.fires_between(after, until))
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return [f"{schedule.zone} {day} {schedule.expression}: {counted[day]}" for day in days if counted[day] != 1]


@pytest.mark.spec("A4-01")
@pytest.mark.fault("F10")
def test_a_daily_job_runs_once_every_local_day_in_every_zone(seed: int, note: Callable[[str], None]) -> None:
    problems = []
    zones = chosen(seed)
    for zone in zones:
        place = ZoneInfo(zone)
        for at in moments(zone):
            local = from_micros(at).astimezone(place)
            hours = sorted({(local.hour + around) % 24 for around in (-3, -2, -1, 0, 1)} | {0, 2, 23})
            for hour in hours:
                daily = Schedule(f"30 {hour} * * *", zone=zone)
                problems += days_that_are_not_once(
                    daily, local.date() - timedelta(days=2), local.date() + timedelta(days=2)
                )
        if ALL:
            for expression in ("0 0 * * *", "30 2 * * *", "30 23 * * *"):
                problems += days_that_are_not_once(
                    Schedule(expression, zone=zone), date(2026, 1, 2), date(2035, 12, 30)
                )
    note(f"schedules: a daily job over the clock changes of ten years in {len(zones)} time zones")
    assert problems == []


@pytest.mark.spec("A4-01")
@pytest.mark.fault("F10")
def test_a_quarter_hourly_job_runs_every_real_quarter_in_every_zone(seed: int) -> None:
    for zone in chosen(seed):
        quarterly = Schedule("*/15 * * * *", zone=zone)
        for at in moments(zone):
            around = list(quarterly.fires_between(at - 3 * HOUR, at + 3 * HOUR))
            assert around == list(range(at - 3 * HOUR + 15 * MINUTE, at + 3 * HOUR + 1, 15 * MINUTE)), zone
    for zone in one_of_each() if ALL else ():
        quarters = Schedule("*/15 * * * *", zone=zone).fires_between(BEGIN, END)
        assert all(fire == expected for fire, expected in zip(quarters, quarters_of_ten_years(), strict=True)), zone


def quarters_of_ten_years() -> range:
    return range(BEGIN + 15 * MINUTE, END + 1, 15 * MINUTE)


@pytest.mark.fault("F10")
def test_berlin_in_the_night_the_clock_leaps_and_the_night_it_goes_back() -> None:
    assert local_fires("30 2 * * *", "Europe/Berlin", "2026-03-28", days=3) == [
        "2026-03-28 02:30+0100",
        "2026-03-29 03:00+0200",
        "2026-03-30 02:30+0200",
    ]
    assert local_fires("30 2 * * *", "Europe/Berlin", "2026-10-24", days=3) == [
        "2026-10-24 02:30+0200",
        "2026-10-25 02:30+0200",
        "2026-10-26 02:30+0100",
    ]
    leap = local_fires("*/30 * * * *", "Europe/Berlin", "2026-03-29", days=1)
    assert leap[2:6] == [f"2026-03-29 {wall}" for wall in ("01:00+0100", "01:30+0100", "03:00+0200", "03:30+0200")]
    back = local_fires("*/30 * * * *", "Europe/Berlin", "2026-10-25", days=1)
    assert back[4:8] == [f"2026-10-25 {wall}" for wall in ("02:00+0200", "02:30+0200", "02:00+0100", "02:30+0100")]


def test_two_times_inside_a_leap_make_one_fire() -> None:
    assert local_fires("0,30 2 * * *", "Europe/Berlin", "2026-03-29", days=1) == ["2026-03-29 03:00+0200"]


@pytest.mark.fault("F10")
def test_a_leap_over_the_end_of_a_day_fires_before_it() -> None:
    assert local_fires("30 23 * * *", "America/Nuuk", "2026-03-28", days=2) == [
        "2026-03-28 22:59-0200",
        "2026-03-29 23:30-0100",
    ]


def test_a_day_that_a_zone_left_out_has_no_fire() -> None:
    assert local_fires("0 9 * * *", "Pacific/Apia", "2011-12-29", days=3) == [
        "2011-12-29 09:00-1000",
        "2011-12-31 09:00+1400",
    ]


def test_asked_in_the_second_pass_of_an_hour_it_names_no_moment_that_is_over() -> None:
    second_pass = to_micros(datetime(2026, 10, 25, 1, 10, tzinfo=UTC))  # 02:10 for the second time
    tomorrow = to_micros(datetime(2026, 10, 26, 1, 30, tzinfo=UTC))
    assert Schedule("30 2 * * *", zone="Europe/Berlin").next_after(second_pass) == tomorrow


def test_half_an_hour_is_a_clock_change_too() -> None:
    assert local_fires("*/15 2 * * *", "Australia/Lord_Howe", "2026-04-05", days=1) == [
        f"2026-04-05 02:{minute:02}+1030" for minute in (0, 15, 30, 45)
    ]
    assert local_fires("10 2 * * *", "Australia/Lord_Howe", "2026-10-04", days=1) == ["2026-10-04 02:30+1100"]


def local_fires(expression: str, zone: str, first: str, *, days: int) -> list[str]:
    place = ZoneInfo(zone)
    midnight = datetime.fromisoformat(first)
    after = to_micros(midnight.replace(tzinfo=place).astimezone(UTC)) - 1
    until = to_micros((midnight + timedelta(days=days)).replace(tzinfo=place).astimezone(UTC)) - 1
    fires = Schedule(expression, zone=zone).fires_between(after, until)
    return [f"{from_micros(fire).astimezone(place):%Y-%m-%d %H:%M%z}" for fire in fires]


# -- a slow and obviously right oracle: it reads the wall clock at every minute ---------------------------------------

ODD = "Europe/Berlin America/Nuuk Australia/Lord_Howe America/Havana Africa/Casablanca Asia/Beirut UTC".split()
Walls = dict[date, list[tuple[time, int]]]


def oracle(fields: dict[str, set[int]], fixed: bool, either_day: bool, zone: str, after: int, until: int) -> list[int]:
    def fits(day: date) -> bool:
        of_month, of_week = day.day in fields["days"], day.isoweekday() % 7 in fields["weekdays"]
        return day.month in fields["months"] and (of_month or of_week if either_day else of_month and of_week)

    fires: set[int] = set()
    for day, shown in wall_clock(zone, after - 2 * DAY, until + 2 * DAY).items():
        if not fits(day):
            continue
        if not fixed:
            fires |= {at for wall, at in shown if wall.hour in fields["hours"] and wall.minute in fields["minutes"]}
            continue
        for wanted in (time(hour, minute) for hour in fields["hours"] for minute in fields["minutes"]):
            exact = [at for wall, at in shown if wall == wanted]
            later = [at for wall, at in shown if wall > wanted]
            fires.add(min(exact or later, default=max(at for _, at in shown)))
    return sorted(fire for fire in fires if after < fire <= until)


def wall_clock(zone: str, begin: int, end: int) -> Walls:
    place = ZoneInfo(zone)
    days: Walls = defaultdict(list)
    for at in range(begin // MINUTE * MINUTE, end, MINUTE):
        local = from_micros(at).astimezone(place)
        days[local.date()].append((local.time().replace(fold=0), at))
    whole = sorted(days)[1:-1]  # the first and last are cut
    return {day: days[day] for day in whole}


def some(first: int, last: int, most: int = 4) -> st.SearchStrategy[set[int]]:
    return st.sets(st.integers(first, last), min_size=1, max_size=most)


@given(
    zone=st.sampled_from(ODD),
    change=st.integers(0, 99),
    lead=st.integers(0, 26 * 60).map(lambda minutes: minutes * MINUTE),
    minutes=some(0, 59),
    hours=st.none() | some(0, 23, 6) | st.sets(st.sampled_from([0, 1, 2, 3, 22, 23]), min_size=1),
    days=st.none() | some(1, 31, 20),
    weekdays=st.none() | some(0, 6),
    every_minute=st.booleans(),
)
@example("America/Nuuk", 0, HOUR, {30}, {23}, None, None, False)
@example("Asia/Beirut", 1, HOUR, {0}, {23, 0}, None, None, True)
def test_it_fires_whenever_an_oracle_says_that_reads_the_clock_every_minute(
    zone: str,
    change: int,
    lead: int,
    minutes: set[int],
    hours: set[int] | None,
    days: set[int] | None,
    weekdays: set[int] | None,
    every_minute: bool,
) -> None:
    at = (moments(zone) or [BEGIN + 40 * DAY])[change % max(1, len(moments(zone)))]
    after, until = at - lead - 1, at + 30 * HOUR
    texts = [
        "*" if values is None else ",".join(map(str, sorted(values)))
        for values in (minutes, hours, days, None, weekdays)
    ]
    if every_minute:
        texts[0], minutes = "*/10", set(range(0, 60, 10))
    fields = {
        "minutes": minutes,
        "hours": hours or set(range(24)),
        "days": days or set(range(1, 32)),
        "months": set(range(1, 13)),
        "weekdays": weekdays or set(range(7)),
    }
    fixed = hours is not None and not every_minute
    either_day = days is not None and weekdays is not None
    expected = oracle(fields, fixed, either_day, zone, after, until)
    assert list(Schedule(" ".join(texts), zone=zone).fires_between(after, until)) == expected
