"""When something that repeats happens next: no drift, nothing twice and nothing skipped when clocks change."""

# ruff: noqa: DTZ001 (wall times have no zone)

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from random import Random
from zoneinfo import ZoneInfo

import pytest

from penstock.model.errors import BadConfig, BadParameter
from penstock.model.times import from_micros, to_micros
from penstock.recurrence import Occurrence, Recurrence

BERLIN = "Europe/Berlin"
ZONES = [BERLIN, "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "Asia/Kolkata", "UTC"]


def at(text: str, zone: str = "UTC") -> int:
    return to_micros(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)))


def local(found: list[Occurrence], zone: str = BERLIN) -> list[str]:
    return [each.shown(zone)["local"] for each in found]


@pytest.mark.spec("C-19", "G3-11")
@pytest.mark.parametrize("rule", [{"cron": "0 9 * * *"}, {"every": "1 day"}, {"rrule": "FREQ=DAILY"}])
def test_nine_in_the_morning_stays_nine_when_clocks_change(rule: dict[str, str]) -> None:
    recurrence = Recurrence(rule, starts=datetime(2026, 3, 1, 9), zone=BERLIN)
    found = recurrence.upcoming(at("2026-03-28T12:00"), 2)
    assert local(found) == ["2026-03-29T09:00+02:00", "2026-03-30T09:00+02:00"]
    assert found[0].shown(BERLIN)["utc"] == "2026-03-29T07:00Z"


@pytest.mark.parametrize(
    "rule", [{"cron": "30 2 * * *"}, {"every": "1 day"}, {"rrule": "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30"}]
)
def test_a_time_that_clocks_leap_over_happens_once_right_after_the_leap(rule: dict[str, str]) -> None:
    recurrence = Recurrence(rule, starts=datetime(2026, 3, 1, 2, 30), zone=BERLIN)
    that_day = [each for each in local(recurrence.upcoming(at("2026-03-28T12:00"), 6)) if each.startswith("2026-03-29")]
    expected = ["2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"]
    assert that_day == (expected if "rrule" in rule else expected[:1])


@pytest.mark.parametrize("rule", [{"cron": "30 2 * * *"}, {"every": "1 day"}, {"rrule": "FREQ=DAILY"}])
def test_a_time_that_comes_twice_happens_the_first_time(rule: dict[str, str]) -> None:
    recurrence = Recurrence(rule, starts=datetime(2026, 10, 1, 2, 30), zone=BERLIN)
    found = recurrence.upcoming(at("2026-10-24T12:00"), 2)
    assert local(found) == ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]


@pytest.mark.spec("C-19")
@pytest.mark.parametrize("zone", ZONES)
def test_every_day_of_ten_years_has_one_occurrence_in_every_zone(zone: str, seed: int) -> None:
    """One hour of the night a year, drawn: most changes of clocks are then."""
    random = Random(f"{seed} {zone}")
    for year in range(2020, 2030):
        starts = datetime(year, 1, 1, random.randrange(4), random.randrange(60))
        recurrence = Recurrence(random.choice([{"every": "1 day"}, {"rrule": "FREQ=DAILY"}]), starts=starts, zone=zone)
        found = recurrence.upcoming(at(f"{year}-01-01", zone) - 1, 366)
        days = [from_micros(each.at).astimezone(ZoneInfo(zone)).date() for each in found]
        assert days == [date(year, 1, 1) + timedelta(number) for number in range(366)]
        assert all(later.at > earlier.at for earlier, later in pairwise(found))


@pytest.mark.spec("C-19")
def test_what_was_missed_collapses_into_one_and_nothing_drifts() -> None:
    recurrence = Recurrence({"every": "1 hour"}, starts=datetime(2026, 11, 1, 9, 15))
    three_days_later = at("2026-11-04T09:20:07")
    assert recurrence.next_after(three_days_later) == Occurrence(at("2026-11-04T10:15"))


@pytest.mark.parametrize(
    "every, expected",
    [
        ("1 month", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]),
        ("2 months", ["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31"]),
        ("year", ["2026-01-31", "2027-01-31", "2028-01-31", "2029-01-31"]),
        ("3 weeks", ["2026-01-31", "2026-02-21", "2026-03-14", "2026-04-04"]),
        ("10 Days", ["2026-01-31", "2026-02-10", "2026-02-20", "2026-03-02"]),
    ],
)
def test_every_n_is_counted_from_the_anchor(every: str, expected: list[str]) -> None:
    recurrence = Recurrence({"every": every}, starts=datetime(2026, 1, 31, 9))
    whole = recurrence.upcoming(at("2026-01-01"), 4)
    assert [each.shown("UTC")["local"][:10] for each in whole] == expected
    for earlier, later in pairwise(whole):  # from any moment between as well
        assert recurrence.next_after((earlier.at + later.at) // 2) == later


@pytest.mark.parametrize("rule", [{"cron": "0 9 * * *"}, {"every": "1 day"}, {"rrule": "FREQ=DAILY"}])
def test_a_count_ends_with_its_last_occurrence_whatever_was_missed(rule: dict[str, str]) -> None:
    recurrence = Recurrence(rule, starts=datetime(2026, 11, 1, 9), count=3)
    first = recurrence.first()
    assert first == Occurrence(at("2026-11-01T09:00"), 1)
    third = recurrence.next_after(at("2026-11-02T12:00"), first)
    assert third == Occurrence(at("2026-11-03T09:00"), 3)
    assert recurrence.next_after(at("2026-11-03T12:00"), third) is None
    assert recurrence.next_after(at("2026-11-03T12:00")) is None  # without `since` as well


def test_days_can_be_left_out_and_still_count() -> None:
    left_out = frozenset({date(2026, 11, 2), date(2026, 11, 3)})
    counted = Recurrence({"every": "1 day"}, starts=datetime(2026, 11, 1, 9), count=4, except_dates=left_out)
    assert [each.number for each in counted.upcoming(0)] == [1, 4]
    endless = Recurrence({"cron": "* * * * *"}, starts=datetime(2026, 11, 1, 9), except_dates=left_out)
    assert endless.next_after(at("2026-11-01T23:59")) == Occurrence(at("2026-11-04"))


def test_an_end_may_be_a_local_day_a_local_time_or_a_moment() -> None:
    for until, count in (
        (date(2026, 11, 3), 3),
        (datetime(2026, 11, 3, 8, 59), 2),
        (datetime(2026, 11, 3, 8, tzinfo=UTC), 3),
    ):
        ending = Recurrence({"every": "1 day"}, starts=datetime(2026, 11, 1, 9), zone=BERLIN, until=until)
        assert len(ending.upcoming(0, 9)) == count


def test_a_day_that_never_was_has_no_occurrence() -> None:
    """Samoa went from Thursday the 29th to Saturday the 31st of December 2011."""
    for rule in ({"every": "1 day"}, {"rrule": "FREQ=DAILY"}):
        recurrence = Recurrence(rule, starts=datetime(2011, 12, 28, 9), zone="Pacific/Apia")
        assert [each[8:10] for each in local(recurrence.upcoming(0, 3), "Pacific/Apia")] == ["28", "29", "31"]
    ended = Recurrence(
        {"every": "1 day"}, starts=datetime(2011, 12, 28, 9), zone="Pacific/Apia", until=date(2011, 12, 29)
    )
    assert len(ended.upcoming(0)) == 2


@pytest.mark.parametrize(
    "given, told",
    [
        ({"rule": {"each": "day"}}, '{"every": "3 days"}'),
        ({"rule": {}}, '{"every": "3 days"}'),
        ({"rule": {"every": "1 day", "cron": "* * * * *"}}, '{"every": "3 days"}'),
        ({"rule": {"every": "0 days"}}, "1 to 1,000 minutes"),
        ({"rule": {"every": "30 seconds"}}, "1 to 1,000 minutes"),
        ({"rule": {"cron": "* * * *"}}, "4 fields"),
        ({"zone": "Europe/Berlim"}, "Did you mean Europe/Berlin?"),
        ({"count": 0}, "from 1 to 1,000"),
        ({"count": 1_001}, "from 1 to 1,000"),
        ({"rule": {"cron": "0 9 * * *"}, "count": 201}, "from 1 to 200"),
        ({"rule": {"rrule": "FREQ=DAILY;COUNT=2"}, "count": 2}, "give it once"),
        ({"except_dates": frozenset(date(2026, 1, 1) + timedelta(day) for day in range(401))}, "At most 400 days"),
        ({"starts": datetime(2026, 1, 1, tzinfo=UTC)}, "leave the zone out"),
    ],
)
def test_a_bad_rule_is_refused_with_what_to_write_instead(given: dict[str, object], told: str) -> None:
    values: dict[str, object] = {"rule": {"every": "1 day"}, "starts": datetime(2026, 1, 1, 9)} | given
    with pytest.raises((BadParameter, BadConfig)) as refused:
        Recurrence(values.pop("rule"), **values)  # type: ignore[arg-type]
    assert told in str(refused.value)


def test_a_rule_that_ends_before_it_starts_is_refused() -> None:
    with pytest.raises(BadParameter, match="no occurrence before its end"):
        Recurrence({"every": "1 day"}, starts=datetime(2026, 1, 1, 9), until=date(2025, 1, 1)).first()
