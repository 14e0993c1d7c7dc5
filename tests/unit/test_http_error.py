"""`ps.HttpError`: the statuses that a route can answer with, and what a program reads of it."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.model.errors import BadApp


@pytest.mark.parametrize("status", [400, 404, 500, 599])
def test_a_route_answers_with_the_status_of_a_failure(status: int) -> None:
    error = ps.HttpError(status, "There is no such note.", field="note")

    assert (error.status, error.name) == (status, f"http_{status}")
    assert (str(error), error.facts) == ("There is no such note.", {"field": "note"})


@pytest.mark.parametrize("status", [-1, 0, 200, 399, 600])
def test_a_status_that_is_no_failure_is_refused(status: int) -> None:
    with pytest.raises(BadApp, match=f"status is {status}; give 400 to 599"):
        ps.HttpError(status, "There is no such note.")


def test_an_error_has_the_name_that_it_is_given() -> None:
    assert ps.HttpError(404, "There is no such note.", name="no_such_note").name == "no_such_note"
