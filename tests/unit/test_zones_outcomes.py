"""Errors are told apart by type and status, and only those about the service count against it."""

from __future__ import annotations

import json

import msgspec
import pytest

from penstock.control.outcomes import ErrorClass, Tally, classify, next_try_seconds, of_status, tally
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


def json_error() -> Exception:
    try:
        json.loads("{")
    except json.JSONDecodeError as error:
        return error
    raise AssertionError


@pytest.mark.spec("A6-24", "G5-12")
@pytest.mark.parametrize(
    "error, expected",
    [
        (Throttled(), "rate_limit"),
        (Unavailable(), "server_error"),
        (Gone(), "not_found"),
        (Refused(), "not_found"),
        (Permanent(), "not_found"),
        (Unparsable(), "parse_error"),
        (TimeoutError(), "timeout"),
        (json_error(), "parse_error"),
        (msgspec.ValidationError("Expected `int`"), "parse_error"),
        (Answered("track 403500 parse", 200), "parse_error"),
        (Answered("fine, really", 403), "rate_limit"),
        (Answered("404", 429), "rate_limit"),
        (Coded(503), "server_error"),
        (Coded(404), "not_found"),
        (Coded(418), "unknown"),
        (RuntimeError("timed out after 15000ms"), "unknown"),
        (RuntimeError("403 429 500 404 parse timeout"), "unknown"),
    ],
)
def test_an_error_is_told_by_its_type_or_status_and_never_by_its_text(error: Exception, expected: str) -> None:
    assert classify(error) == expected


@pytest.mark.spec("A6-24")
@pytest.mark.parametrize(
    "status, expected",
    [
        (403, "rate_limit"),
        (429, "rate_limit"),
        (500, "server_error"),
        (502, "server_error"),
        (503, "server_error"),
        (504, "timeout"),
        (404, "not_found"),
        (200, "parse_error"),
        (400, "unknown"),
    ],
)
def test_each_status_has_its_class(status: int, expected: str) -> None:
    assert of_status(status) == expected


@pytest.mark.spec("A6-25", "G5-10", "G5-11", "F-39")
def test_only_failures_of_the_service_count_as_failed() -> None:
    assert tally([ErrorClass.RATE_LIMIT]) == Tally(failed=1, rate_limited=1)
    assert tally([ErrorClass.SERVER_ERROR, ErrorClass.TIMEOUT, ErrorClass.UNKNOWN]) == Tally(failed=3)
    assert tally([ErrorClass.NOT_FOUND, ErrorClass.PARSE_ERROR]) == Tally(skipped=2)
    assert tally([None, None, ErrorClass.NOT_FOUND]) == Tally(completed=2, skipped=1)


@pytest.mark.spec("G5-13")
def test_what_may_pass_is_tried_again_up_to_a_cap_and_what_cannot_is_not() -> None:
    assert next_try_seconds(ErrorClass.NOT_FOUND, 1) is None
    assert next_try_seconds(ErrorClass.PARSE_ERROR, 1) is None
    assert [next_try_seconds(ErrorClass.TIMEOUT, attempt) for attempt in range(1, 6)] == [60, 120, 240, 480, None]
    assert [next_try_seconds(ErrorClass.SERVER_ERROR, attempt) for attempt in (4, 5)] == [480, None]
    assert [next_try_seconds(ErrorClass.RATE_LIMIT, attempt) for attempt in (1, 5, 50)] == [60, 960, 3_600]
