"""One time format: what is written compares with what is asked for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import BadConfig, BadParameter
from penstock.model.times import (
    MICROS,
    day_of,
    from_micros,
    from_text,
    iso_z,
    month_of,
    older_than,
    parse_span,
    text_of_micros,
    to_micros,
    to_text,
)

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001


def test_text_is_utc_to_the_second() -> None:
    assert (
        to_text(datetime(2026, 11, 15, 1, 2, 3, 999_999, tzinfo=timezone(timedelta(hours=2)))) == "2026-11-14 23:02:03"
    )


@pytest.mark.parametrize("write", [to_text, to_micros])
def test_a_time_without_a_zone_is_refused(write: Callable[[datetime], object]) -> None:
    with pytest.raises(BadParameter, match="no time zone"):
        write(datetime(2026, 11, 15))  # noqa: DTZ001


def test_a_time_that_leaves_the_calendar_in_utc_is_refused() -> None:
    with pytest.raises(BadParameter, match="calendar"):
        to_text(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))))


@given(MOMENTS)
def test_text_comes_back_as_the_time_it_stood_for(moment: datetime) -> None:
    assert from_text(to_text(moment)) == moment.replace(microsecond=0)


@given(MOMENTS, MOMENTS)
def test_text_sorts_like_the_times_it_stands_for(one: datetime, other: datetime) -> None:
    assert (to_text(one) <= to_text(other)) or one > other
    assert (iso_z(to_micros(one)) <= iso_z(to_micros(other))) or one > other


@given(MOMENTS)
def test_microseconds_are_exact(moment: datetime) -> None:
    assert from_micros(to_micros(moment)) == moment
    assert text_of_micros(to_micros(moment)) == to_text(moment)


@pytest.mark.spec("G7-04")
@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T12:00:00Z",
        "2026-11-15T12:00:00",
        "2026-11-15",
        "2026-13-01 00:00:00",
        "1794744000000",
        "",
        "٢٠٢٦-11-15 12:00:00",
    ],
)
def test_a_stored_time_has_one_form(text: str) -> None:
    with pytest.raises(BadParameter, match="YYYY-MM-DD HH:MM:SS"):
        from_text(text)


def test_messages_carry_iso_times_of_one_length() -> None:
    assert iso_z(to_micros(NOON)) == "2026-11-15T12:00:00.000Z"
    assert iso_z(to_micros(NOON) + 123_999) == "2026-11-15T12:00:00.123Z"
    assert iso_z(-1) == "1969-12-31T23:59:59.999Z"


def test_costs_are_added_up_by_day_and_month() -> None:
    assert day_of(to_micros(NOON)) == "2026-11-15"
    assert month_of(to_micros(NOON)) == "2026-11"


def test_microseconds_outside_the_calendar_are_refused() -> None:
    with pytest.raises(BadParameter, match="calendar"):
        from_micros(10**18)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("90s", 90),
        ("6d", 518_400),
        ("2h30m", 9_000),
        ("1w1d", 691_200),
        ("500ms", 0.5),
        ("1m500ms", 60.5),
        ("1.5h", 5_400),
        ("0s", 0),
    ],
)
def test_a_span_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_span(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", " ", "90", "30m2h", "1h1h", "-1s", "1 h", "1y", "h", "1e3s", "²s", "9999999999d"])
def test_a_span_that_could_be_misread_is_refused(text: str) -> None:
    with pytest.raises(BadConfig, match="not a duration"):
        parse_span(text)


@pytest.mark.spec("A8-12", "A8-13", "G6-09")
def test_a_stale_query_finds_what_ran_hours_ago_today_and_what_never_ran() -> None:
    db = apsw.Connection(":memory:")
    db.execute("create table sources (name text, last_run_at text)")
    for name, age in (("fresh", 1), ("stale", 3), ("yesterday", 24)):
        db.execute("insert into sources values (?, ?)", (name, to_text(NOON - timedelta(hours=age))))
    db.execute("insert into sources values ('never', null)")

    stale = db.execute(
        "select name from sources where last_run_at is null or last_run_at < :bound order by name",
        {"bound": older_than("2h", now=to_micros(NOON))},
    )

    assert [name for (name,) in stale] == ["never", "stale", "yesterday"]


@pytest.mark.parametrize("span", ["2h", 7_200, 7_200.0, timedelta(hours=2)])
def test_older_than_takes_a_span_in_any_form(span: str | float | timedelta) -> None:
    assert older_than(span, now=to_micros(NOON)) == "2026-11-15 10:00:00"


@given(MOMENTS, st.integers(0, 10 * MICROS), st.integers(1, 5))
def test_nothing_counts_as_older_before_its_time(written: datetime, age_micros: int, span: int) -> None:
    now = to_micros(written) + age_micros

    found = to_text(written) < older_than(span, now=now)

    assert not found or age_micros >= span * MICROS
    assert found or age_micros < (span + 1) * MICROS
