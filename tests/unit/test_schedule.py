"""A schedule fires when its five fields say so, and refuses what could never be meant."""

from __future__ import annotations

import dataclasses
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model import zone
from penstock.model.errors import BadConfig, BadParameter
from penstock.model.schedule import Schedule, meet, refuse_frequent
from penstock.model.times import from_micros, to_micros

MINUTE = 60_000_000
DAY = 24 * 60 * MINUTE
YEAR_END = "2027-12-31 23:50"
LEAP_DAY = "2028-02-28 23:50"


def micros(text: str) -> int:
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=UTC))


def fires(schedule: Schedule, after: str, count: int) -> list[str]:
    """`02-29 06:00`, in UTC."""
    return [f"{from_micros(fire):%m-%d %H:%M}" for fire in islice(endless(schedule, micros(after)), count)]


def endless(schedule: Schedule, after: int) -> Iterator[int]:
    while True:
        after = schedule.next_after(after)
        yield after


@pytest.mark.spec("A4-01")
@pytest.mark.parametrize(
    "expression, after, expected",
    [
        ("*/5 * * * *", LEAP_DAY, ["02-28 23:55", "02-29 00:00", "02-29 00:05"]),
        ("*/5 * * * *", YEAR_END, ["12-31 23:55", "01-01 00:00", "01-01 00:05"]),
        ("0 */6 * * *", LEAP_DAY, ["02-29 00:00", "02-29 06:00", "02-29 12:00", "02-29 18:00", "03-01 00:00"]),
        ("0 */6 * * *", YEAR_END, ["01-01 00:00", "01-01 06:00"]),
        ("0 6 * * *", LEAP_DAY, ["02-29 06:00", "03-01 06:00"]),
        ("0 6 * * *", "2027-02-28 05:59", ["02-28 06:00", "03-01 06:00"]),
        ("0 6 * * *", YEAR_END, ["01-01 06:00", "01-02 06:00"]),
        ("0 6 * * SUN", LEAP_DAY, ["03-05 06:00", "03-12 06:00"]),
        ("0 6 * * SUN", YEAR_END, ["01-02 06:00", "01-09 06:00"]),
        ("*/30 * * * *", LEAP_DAY, ["02-29 00:00", "02-29 00:30"]),
        ("*/30 * * * *", YEAR_END, ["01-01 00:00", "01-01 00:30"]),
        ("* * * * *", "2028-02-29 23:58", ["02-29 23:59", "03-01 00:00", "03-01 00:01"]),
        ("* * * * *", "2027-12-31 23:58", ["12-31 23:59", "01-01 00:00", "01-01 00:01"]),
    ],
)
def test_fires_follow_the_calendar_over_leap_days_and_year_ends(
    expression: str, after: str, expected: list[str]
) -> None:
    assert fires(Schedule(expression), after, len(expected)) == expected


@pytest.mark.spec("A4-01")
def test_a_leap_day_comes_every_four_years_but_not_in_2100() -> None:
    leap = Schedule("0 0 29 FEB *")
    years = [from_micros(fire).year for fire in islice(endless(leap, micros("2091-01-01 00:00")), 4)]
    assert years == [2092, 2096, 2104, 2108]


@pytest.mark.spec("A4-01")
@pytest.mark.parametrize(
    "one, other",
    [
        ("0 9 * * MON-FRI", "0 9 * * 1-5"),
        ("0 9 * * mon,Wed", "0 9 * * 1,3"),
        ("0 9 * jan-mar *", "0 9 * 1,2,3 *"),
        ("0 9 * * 7", "0 9 * * SUN"),
        ("0 9 * * SAT-SUN", "0 9 * * 0,6"),
        ("0 9 * * 5-7", "0 9 * * FRI,SAT,SUN"),
        ("5/20 * * * *", "5,25,45 * * * *"),
        ("10-40/15 * * * *", "10,25,40 * * * *"),
        ("1,1,2-3 * * * *", "1-3 * * * *"),
        ("  0   9 * *\t* ", "0 9 * * *"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@Hourly", "0 * * * *"),
        ("@weekly", "0 0 * * SUN"),
        ("@monthly", "0 0 1 * *"),
        ("@yearly", "0 0 1 JAN *"),
        ("@annually", "0 0 1 1 *"),
    ],
)
def test_two_ways_to_write_the_same(one: str, other: str) -> None:
    start = "2026-11-15 12:00"
    assert fires(Schedule(one), start, 50) == fires(Schedule(other), start, 50)


def test_with_both_day_fields_either_will_do_and_a_star_leaves_it_to_the_other() -> None:
    assert fires(Schedule("0 0 13 * FRI"), "2026-11-10 00:00", 3) == ["11-13 00:00", "11-20 00:00", "11-27 00:00"]
    assert fires(Schedule("0 0 15 * FRI"), "2026-11-10 00:00", 3) == ["11-13 00:00", "11-15 00:00", "11-20 00:00"]
    assert fires(Schedule("0 0 */2 * FRI"), "2026-11-10 00:00", 2) == ["11-13 00:00", "11-27 00:00"]


@pytest.mark.spec("A4-01")
@pytest.mark.parametrize(
    "expression, field, way_out",
    [
        ("0 0 31 2 *", "day of month", "no later day than its months have"),
        ("0 0 31 4,6 *", "day of month", "no later day than its months have"),
        ("0 0 ? * *", "day of month", "or `*`"),
        ("0 0 * * * *", "expression", "the smallest step is a minute"),
        ("* * * *", "expression", "Write minute, hour"),
        ("", "expression", "Write minute, hour"),
        ("*/90 * * * *", "minute", "a step of at most 60"),
        ("*/0 * * * *", "minute", "a step of at most 60"),
        ("*/x * * * *", "minute", "a step of at most 60"),
        ("60 * * * *", "minute", "0 to 59"),
        ("-5 * * * *", "minute", "0 to 59"),
        ("1- * * * *", "minute", "0 to 59"),
        ("1, * * * *", "minute", "0 to 59"),
        ("1.5 * * * *", "minute", "0 to 59"),
        ("٣ * * * *", "minute", "0 to 59"),
        ("1-2-3 * * * *", "minute", "0 to 59"),
        ("* 24 * * *", "hour", "0 to 23"),
        ("* 22-2 * * *", "hour", "a range that runs upwards"),
        ("* * 0 * *", "day of month", "1 to 31"),
        ("* * * 13 *", "month", "JAN to DEC"),
        ("* * * MON *", "month", "JAN to DEC"),
        ("* * * * 8", "day of week", "SUN to SAT"),
        ("* * * * FRI-MON", "day of week", "a range that runs upwards"),
        ("* * * * MON#6", "day of week", "#2 for the second"),
        ("* * W * *", "day of month", "LW (the last weekday)"),
        ("@reboot", "expression", "@daily"),
        ("@every 5m", "expression", "@daily"),
        ("0," * 200 + "0 * * * *", "expression", "longer than 300"),
    ],
)
def test_nonsense_is_refused_with_the_field_the_value_and_the_way_out(
    expression: str, field: str, way_out: str
) -> None:
    with pytest.raises(BadConfig) as refused:
        Schedule(expression)

    assert refused.value.facts["field"] == field
    assert str(refused.value.facts["value"])[:300] in str(refused.value)
    assert way_out in str(refused.value)


@pytest.mark.spec("A4-01")
def test_the_last_day_of_a_month_and_the_nth_weekday_of_a_month_can_be_named() -> None:
    assert fires(Schedule("0 6 L * *"), "2027-12-15 00:00", 4) == [
        "12-31 06:00",
        "01-31 06:00",
        "02-29 06:00",
        "03-31 06:00",
    ]
    assert fires(Schedule("0 6 LW * *"), "2027-10-01 00:00", 2) == ["10-29 06:00", "11-30 06:00"]
    assert fires(Schedule("0 6 * * MON#2"), "2026-11-01 00:00", 2) == ["11-09 06:00", "12-14 06:00"]
    assert fires(Schedule("0 6 * * 5L"), "2026-11-01 00:00", 2) == ["11-27 06:00", "12-25 06:00"]


def test_a_31st_that_no_month_has_is_fine_beside_a_weekday() -> None:
    assert fires(Schedule("0 0 31 2 MON"), "2027-01-01 00:00", 2) == ["02-01 00:00", "02-08 00:00"]


@pytest.mark.parametrize(
    "rules, field",
    [
        ({"catch_up": "always"}, "catch_up"),
        ({"overlap": "maybe"}, "overlap"),
        ({"jitter_seconds": -1}, "jitter_seconds"),
        ({"jitter_seconds": 300}, "jitter_seconds"),
        ({"catch_up_max": 0}, "catch_up_max"),
        ({"catch_up_max": 1_001}, "catch_up_max"),
        ({"zone": "Europe/Berln"}, "zone"),
        ({"zone": "../etc/passwd"}, "zone"),
        ({"zone": "Europe"}, "zone"),
        ({"zone": ""}, "zone"),
        ({"zone": "\0"}, "zone"),
    ],
)
def test_a_rule_that_does_not_exist_is_refused(rules: dict[str, str], field: str) -> None:
    with pytest.raises(BadConfig) as refused:
        dataclasses.replace(Schedule("*/5 * * * *"), **rules)  # type: ignore[arg-type]

    assert refused.value.facts == {"field": field, "value": rules[field]}


def test_a_misspelt_zone_is_answered_with_the_nearest() -> None:
    with pytest.raises(BadConfig, match=r"Did you mean Europe/Berlin\?$"):
        Schedule("@daily", zone="europe/berlin")


def test_a_machine_without_time_zone_data_learns_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    path = zoneinfo.TZPATH
    for name in {"tzdata", "tzdata.zoneinfo", "tzdata.zoneinfo.Europe"}:
        monkeypatch.setitem(sys.modules, name, None)
    zone._place.cache_clear()
    zoneinfo.ZoneInfo.clear_cache()
    zoneinfo.reset_tzpath(to=())
    try:
        with pytest.raises(BadConfig, match="pip install tzdata"):
            Schedule("@daily", zone="Europe/Berlin")
        assert Schedule("@daily", zone="UTC").next_after(0) == DAY
    finally:
        zoneinfo.reset_tzpath(to=path)


def test_a_schedule_is_a_value() -> None:
    schedule = Schedule("@daily", zone="Europe/Berlin")
    assert schedule == Schedule("@daily", zone="Europe/Berlin")
    assert hash(schedule) == hash(Schedule("@daily", zone="Europe/Berlin"))
    assert schedule != Schedule("@daily")
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.zone = "UTC"  # type: ignore[misc]


def test_windows_side_by_side_share_no_fire_and_lose_none() -> None:
    schedule, start = Schedule("*/5 * * * *"), micros("2026-11-15 12:00")
    edges = [start + minutes * MINUTE for minutes in (0, 5, 6, 10, 60)]
    whole = list(schedule.fires_between(edges[0], edges[-1]))
    pieces = [fire for after, until in pairwise(edges) for fire in schedule.fires_between(after, until)]
    assert pieces == whole
    assert len(whole) == 12


def test_a_fire_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(BadParameter):
        Schedule("0 0 1 1 *").next_after(micros("9999-06-01 00:00"))


@given(st.sampled_from(["*/5 * * * *", "0 6 * * *", "17 3 1,9 * *", "* 2 * 1 *"]), st.integers(0, 400), st.data())
def test_the_latest_fire_found_by_halving_is_the_last_of_those_walked(
    expression: str, days: int, data: st.DataObject
) -> None:
    schedule, until = Schedule(expression), micros("2026-11-15 12:00") + days * DAY
    after = until - data.draw(st.integers(0, 3 * DAY))
    assert schedule.latest_between(after, until) == max(schedule.fires_between(after, until), default=None)


@pytest.mark.spec("A4-15", "G7-01")
@pytest.mark.parametrize(
    "expression, allowed",
    [("*/5 * * * *", True), ("0 6 * * *", True), ("* * * * *", False), ("*/4 * * * *", False), ("0,3 * * * *", False)],
)
def test_a_schedule_of_less_than_five_minutes_needs_a_condition(expression: str, allowed: bool) -> None:
    refused = refuse_frequent(Schedule(expression))
    assert refused is None if allowed else refused is not None and "when=" in refused


def test_a_fire_that_meets_an_earlier_one_runs_waits_or_is_skipped_by_rule() -> None:
    assert [meet(rule, running=0, waiting=0) for rule in ("skip", "queue", "allow")] == ["run"] * 3
    assert meet("skip", running=1, waiting=0) == "skip"
    assert meet("queue", running=1, waiting=0) == "wait"
    assert meet("queue", running=0, waiting=1) == "wait"
    assert meet("queue", running=1, waiting=100) == "skip"
    assert meet("allow", running=1, waiting=0) == "run"
