"""Decides how much of the suite runs: a fixed part in `make test`, everything in `make test-all`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

EVERYTHING = "PENSTOCK_EVERYTHING" in os.environ


def patient(seconds: float) -> float:
    """Return a bound on real time: `seconds` on a quiet machine, more where others ask for its processors too.

    The tests and the type checker beside them ask for twice as many as there are; that counts as quiet.
    """
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1) - 1.0)


def sampled(
    names: str, cases: Iterable[Any], *, every: int, ids: Callable[[Any], str] | None = None
) -> pytest.MarkDecorator:
    """Parametrize a test whose cases resemble each other: each `every`th case is unmarked, the others are slow."""
    is_one = "," not in names
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(*([case] if is_one else case), marks=[pytest.mark.slow] if number % every else [])
            for number, case in enumerate(cases)
        ],
        ids=ids,
    )
