"""A ceiling limits one measure or several, and refuses what limits nothing."""

from __future__ import annotations

import math

import pytest

import penstock as ps
from penstock.config import parse
from penstock.model.errors import BadApp, BadConfig
from penstock.model.prices import Usage


def test_the_first_measure_that_is_reached_is_described() -> None:
    ceiling = ps.Ceiling(rows_read=1_000, usd=0.5)

    assert ceiling.reached(Usage(rows_read=999)) is None
    assert ceiling.reached(Usage(rows_read=1_500)) == "1,500 of 1,000 rows read this month"
    assert str(ceiling.reached(Usage(rows_written=100_000_000))).endswith("of 0.50 USD this month")


@pytest.mark.parametrize("given", [{}, {"usd": 0}, {"rows_read": -1}, {"rows_read": 5, "usd": math.nan}, {"usd": True}])
def test_a_ceiling_that_limits_nothing_or_everything_is_refused(given: dict[str, float]) -> None:
    with pytest.raises(BadApp, match="ceiling"):
        ps.Ceiling(**given)


def test_the_ceiling_of_the_whole_app_is_checked_where_it_is_read() -> None:
    assert parse("[ceiling]\nusd = 5.0\nrows_read = 10", "penstock.toml").ceiling == ps.Ceiling(usd=5.0, rows_read=10)
    for wrong in ("usd = 0.0", "", 'usd = "5"', "rows = 5"):
        with pytest.raises(BadConfig, match=r"penstock\.toml"):
            parse(f"[ceiling]\n{wrong}", "penstock.toml")
