"""RRULEs are what dateutil makes of them, or refused: judged by its own test data and by rules drawn at random."""

# ruff: noqa: DTZ001 (wall times have no zone)

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from time import process_time

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.model.errors import BadParameter
from penstock.model.times import from_micros, to_micros
from penstock.recurrence import Recurrence

CASES = json.loads(Path(__file__).with_name("rrule_cases.json").read_text("utf-8"))["cases"]
LEAST_EQUAL = 90  # of the 248; the others name seconds, weeks or days of the year, Easter, or narrow hours
SECONDS_MAX = 0.05


def walls(rule: str, starts: datetime, most: int) -> list[datetime]:
    found = Recurrence({"rrule": rule}, starts=starts).upcoming(to_micros(starts.replace(tzinfo=UTC)) - 1, most)
    return [from_micros(each.at).replace(tzinfo=None) for each in found]


@pytest.mark.spec("C-19")
def test_the_rules_of_dateutils_own_tests_give_the_same_times_or_are_refused(note: Callable[[str], None]) -> None:
    equal, refused = 0, 0
    for case in CASES:
        expected = [datetime.fromisoformat(each) for each in case["expected"]]
        try:
            found = walls(case["rrule"], datetime.fromisoformat(case["starts"]), len(expected) + 1)
        except BadParameter:
            refused += 1
        else:
            assert found == expected, case
            equal += 1
    note(f"RRULE: {equal} of dateutil's {len(CASES)} cases are equal, {refused} are refused")
    assert equal >= LEAST_EQUAL


days = st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"])
numbered_days = st.builds(lambda number, day: f"{number}{day}", st.sampled_from([1, 2, 5, -1, -2, -5]), days)


@st.composite
def rules(draw: st.DrawFn) -> str:
    frequency = draw(st.sampled_from(["DAILY", "WEEKLY", "MONTHLY", "YEARLY"]))
    parts = [f"FREQ={frequency}", f"INTERVAL={draw(st.integers(1, 9))}", f"WKST={draw(days)}"]
    numbered = draw(st.sampled_from([days, numbered_days])) if frequency in ("MONTHLY", "YEARLY") else days
    optional = {
        "BYDAY": numbered,
        "BYMONTHDAY": st.sampled_from([1, 2, 13, 28, 29, 30, 31, -1, -2, -31]),
        "BYMONTH": st.integers(1, 12),
        "BYHOUR": st.integers(0, 23),
        "BYMINUTE": st.integers(0, 59),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            parts.append(f"{name}={','.join(map(str, draw(st.lists(values, min_size=1, max_size=3, unique=True))))}")
    # With WEEKLY, dateutil counts positions from the start instead of from the first day of its week.
    if len(parts) > 3 and frequency != "WEEKLY" and draw(st.booleans()):
        parts.append(f"BYSETPOS={draw(st.sampled_from([1, 2, 3, -1, -2]))}")
    return ";".join(parts)


@pytest.mark.spec("C-19")
@given(rules(), st.datetimes(datetime(1990, 1, 1), datetime(2040, 1, 1)), st.integers(0, 2_000))
def test_rules_drawn_at_random_give_the_times_that_dateutil_gives(rule: str, starts: datetime, later: int) -> None:
    starts = starts.replace(second=0, microsecond=0)
    after = starts + timedelta(days=later)
    found = Recurrence({"rrule": rule}, starts=starts).upcoming(to_micros(after.replace(tzinfo=UTC)), 12)
    assume(found)  # for a rule without a time dateutil needs up to eleven seconds
    times = (each for each in rrulestr(rule, dtstart=starts) if each > after)
    assert [from_micros(each.at).replace(tzinfo=None) for each in found] == list(islice(times, len(found)))


def test_positions_in_a_week_are_counted_from_its_first_day() -> None:
    wednesday = datetime(2026, 11, 18, 9)

    found = walls("FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=2", wednesday, 3)

    assert found == [wednesday, wednesday + timedelta(7), wednesday + timedelta(14)]


def test_the_end_is_a_count_a_moment_or_the_whole_last_day() -> None:
    starts = datetime(2026, 3, 1, 9)
    assert len(walls("FREQ=DAILY;COUNT=3", starts, 9)) == 3
    assert len(walls("RRULE:freq=daily;until=20260303;", starts, 9)) == 3
    assert len(walls("FREQ=DAILY;UNTIL=20260303T085959", starts, 9)) == 2
    assert len(walls("FREQ=DAILY;UNTIL=20260303T090000Z", starts, 9)) == 3


def test_hours_and_minutes_without_other_parts_are_every_so_often() -> None:
    starts = datetime(2026, 3, 29, 1)
    found = Recurrence({"rrule": "FREQ=HOURLY;INTERVAL=2"}, starts=starts, zone="Europe/Berlin").upcoming(0, 3)
    assert [each.shown("Europe/Berlin")["local"][11:16] for each in found] == ["01:00", "04:00", "06:00"]


@pytest.mark.parametrize(
    "rule, told",
    [
        ("FREQ=SECONDLY", '{"every": "1 minute"}'),
        ("FREQ=YEARLY;BYWEEKNO=20", "BYMONTH=1;BYDAY=1MO"),
        ("FREQ=YEARLY;BYYEARDAY=100", "BYMONTH and BYMONTHDAY"),
        ("FREQ=YEARLY;BYEASTER=0", "single events"),
        ("FREQ=DAILY;BYSECOND=1", "minute is the finest"),
        ("FREQ=DAILY;RSCALE=HEBREW", "Gregorian"),
        ("FREQ=HOURLY;BYDAY=MO", "Write a cron expression"),
        ("FREQ=DAILY;INTERVAL=0", "from 1 to 1,000"),
        ("FREQ=DAILY;COUNT=100000", "from 1 to 1,000"),
        ("FREQ=DAILY;COUNT=1;UNTIL=20300101", "not both"),
        ("FREQ=DAILY;FREQ=DAILY", "each part once"),
        ("FREQ=DAILY;BYDAY=2MO", "needs FREQ=MONTHLY or YEARLY"),
        ("FREQ=MONTHLY;BYDAY=2MO,TU", "all days a number"),
        ("FREQ=YEARLY;BYDAY=54MO", "from 1 to 53"),
        ("FREQ=MONTHLY;BYDAY=6MO", "from 1 to 5,"),
        ("FREQ=MONTHLY;BYMONTHDAY=0", "from 1 to 31"),
        ("FREQ=MONTHLY;BYMONTHDAY=+-1", "from 1 to 31"),
        ("FREQ=MONTHLY;BYSETPOS=1", "Add BYDAY"),
        ("FREQ=DAILY;BYHOUR=24", "from 0 to 23"),
        ("FREQ=DAILY;WKST=XX", "MO, TU"),
        ("FREQ=DAILY;UNTIL=20261301", "a day such as 20261231"),
        ("FREQ=DAILY;WHAT=1", "Known parts are"),
        ("FREQ=FORTNIGHTLY", "DAILY, WEEKLY"),
        ("FREQ", "NAME=VALUE"),
        ("", "DAILY, WEEKLY"),
        ("FREQ=DAILY;BYMONTHDAY=" + "1," * 5_000 + "1", "longer than 8,192 bytes"),
        ("FREQ=DAILY;BYHOUR=" + ",".join(map(str, range(24))) + ";BYMINUTE=1,2,3,4,5", '{"every"'),
    ],
)
def test_what_is_refused_says_what_to_write_instead(rule: str, told: str) -> None:
    with pytest.raises(BadParameter) as refused:
        Recurrence({"rrule": rule}, starts=datetime(2026, 3, 1, 9))
    assert told in str(refused.value)


NEVER = [
    "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=WEEKLY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=MONTHLY;BYMONTHDAY=30;BYMONTH=2",
    "FREQ=MONTHLY;INTERVAL=12;BYMONTH=5",
    "FREQ=MONTHLY;BYMONTHDAY=1;BYDAY=5MO",
    "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
    "FREQ=YEARLY;BYMONTHDAY=31;BYDAY=MO;BYSETPOS=366",
]


@pytest.mark.parametrize("rule", NEVER)
def test_a_rule_without_an_occurrence_is_refused_within_50_ms(rule: str) -> None:
    recurrence = Recurrence({"rrule": rule}, starts=datetime(2026, 1, 31, 9))
    began = process_time()

    with pytest.raises(BadParameter, match="no occurrence before its end or before 2126"):
        recurrence.first()

    assert process_time() - began < SECONDS_MAX


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=DAILY",
        "FREQ=DAILY;COUNT=1000",
        "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=1",
        "FREQ=MONTHLY;BYDAY=-1FR",
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO",
    ],
)
def test_the_next_time_of_a_rule_from_1990_is_found_within_50_ms(rule: str) -> None:
    recurrence = Recurrence({"rrule": rule}, starts=datetime(1990, 1, 1, 9), zone="Europe/Berlin")
    began = process_time()

    recurrence.next_after(to_micros(datetime(2026, 11, 18, tzinfo=UTC)))

    assert process_time() - began < SECONDS_MAX
