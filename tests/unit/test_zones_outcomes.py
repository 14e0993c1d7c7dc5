"""Errors are told apart by type and status, and only those about the service count against it."""

from __future__ import annotations

import pytest

from penstock.control.pace import outcome_of
from penstock.control.zones_tick import ErrorClass, Tally, tally
from penstock.model.errors import Gone, Permanent, Refused, Throttled, Unavailable, Unparsable


class Answered(Exception):
    """As HTTP clients raise it."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.response = type("Response", (), {"status_code": status})()


class Coded(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("timed out after 15000ms")
        self.status = status


@pytest.mark.spec("A6-24", "G5-12")
@pytest.mark.parametrize(
    "error, expected",
    [
        (None, "ok"),
        (Throttled(), "throttled"),
        (Unavailable(), "unavailable"),
        (TimeoutError(), "unavailable"),
        (Gone(), "gone"),
        (Refused(), "unparsable"),
        (Permanent(), "unparsable"),
        (Unparsable(), "unparsable"),
        (Answered("track 403500 parse", 200), "unparsable"),
        (Answered("fine, really", 403), "throttled"),
        (Answered("404", 429), "throttled"),
        (Coded(500), "unavailable"),
        (Coded(503), "unavailable"),
        (Coded(504), "unavailable"),
        (Coded(404), "gone"),
        (Coded(418), "failed"),
        (RuntimeError("timed out after 15000ms"), "failed"),
        (RuntimeError("403 429 500 404 parse timeout"), "failed"),
    ],
)
def test_an_error_is_reported_by_its_type_or_status_and_never_by_its_text(
    error: Exception | None, expected: str
) -> None:
    assert outcome_of(error) == expected


@pytest.mark.spec("A6-25", "G5-10", "G5-11", "F-39")
def test_only_failures_of_the_service_count_as_failed() -> None:
    assert tally([ErrorClass.RATE_LIMIT]) == Tally(failed=1, rate_limited=1)
    assert tally([ErrorClass.SERVER_ERROR, ErrorClass.TIMEOUT, ErrorClass.UNKNOWN]) == Tally(failed=3)
    assert tally([ErrorClass.NOT_FOUND, ErrorClass.PARSE_ERROR]) == Tally(skipped=2)
    assert tally([None, None, ErrorClass.NOT_FOUND]) == Tally(completed=2, skipped=1)
