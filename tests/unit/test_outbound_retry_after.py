"""Whatever stands in Retry-After, the wait is a number between a second and a day, or none at all."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.times import to_micros
from penstock.outbound.answers import SECONDS_LEAST, SECONDS_MAX, seconds_to_wait

NOW = to_micros(datetime(2026, 11, 15, 9, 30, tzinfo=UTC))


@pytest.mark.fault("F31")
@pytest.mark.parametrize(
    "header, seconds",
    [
        ("120", 120),
        (" 120 ", 120),
        ("1.5", 1.5),
        ("0", 1),
        ("-5", 1),
        ("-99999999999999999999", 1),
        ("86401", 86_400),
        ("9" * 5_000, 86_400),
        ("Sun, 15 Nov 2026 09:31:00 GMT", 60),
        ("Sunday, 15-Nov-26 09:31:00 GMT", 60),
        ("Sun Nov 15 09:31:00 2026", 60),
        ("Sun, 15 Nov 2026 11:31:00 +0200", 60),
        ("Sun, 15 Nov 2026 09:31:00 -0000", 60),
        ("Sun, 15 Nov 2020 09:31:00 GMT", 1),
        ("Wed, 15 Nov 2326 09:31:00 GMT", 86_400),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
        (None, None),
        ("", None),
        ("soon", None),
        ("nan", None),
        ("inf", None),
        ("1e9", None),
        ("0x10", None),
        ("٣", None),
        ("1_000", None),
        ("1, 2", None),
        ("Sun, 32 Nov 2026 09:31:00 GMT", None),
        ("Sun, 15 Nov 99999 09:31:00 GMT", None),
        ("Sun, 15 Nov 2026 09:31:00 GMT" + " " * 20 + "x" * 60, None),
    ],
)
def test_seconds_dates_and_nonsense(header: str | None, seconds: float | None) -> None:
    assert seconds_to_wait(header, now=NOW) == seconds


@pytest.mark.fault("F31")
@given(st.text() | st.integers().map(str) | st.floats().map(str) | st.datetimes().map(lambda at: at.strftime("%c")))
def test_the_wait_is_always_in_bounds(header: str) -> None:
    seconds = seconds_to_wait(header, now=NOW)

    assert seconds is None or SECONDS_LEAST <= seconds <= SECONDS_MAX
