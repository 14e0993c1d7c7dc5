"""The numbers that docs/guide/appstore-numbers.md states are those of the code."""

from __future__ import annotations

import re

import pytest

from bench.appstore_price import WHOLE
from penstock.model.prices import GROSS, Usage, cost
from tests.stated_numbers import DOCS, in_code, stated


def test_the_page_of_numbers_has_the_numbers_of_the_code() -> None:
    shown = stated("guide/appstore-numbers.md")

    assert len(shown) >= 150
    assert shown == in_code(shown, "penstock_systems.appstore")


@pytest.mark.spec("G2-38")
def test_the_price_of_a_month_that_the_docs_cite_is_the_sum_of_measured_parts_and_no_headline_of_the_article() -> None:
    text = (DOCS / "explain/benchmarks.md").read_text("utf-8")
    rows = re.findall(r"^\| month, extrapolated to [\d,]+ apps: ([a-z ]+) \|.*?\| ([\d.]+) USD \|", text, re.MULTILINE)
    prices = {name: float(usd) for name, usd in rows}
    price = prices.pop("price")
    assert set(prices) == set(WHOLE)
    assert price == pytest.approx(sum(prices.values()), rel=0.01)
    # The article says 15 dollars for the first and one dollar for the second; its own rates say this.
    assert cost(Usage(rows_read=15_000_000), GROSS).usd == pytest.approx(0.015)
    assert cost(Usage(rows_written=5_000_000), GROSS).usd == pytest.approx(0.05)
    pages = [page for page in DOCS.rglob("*.md") if re.search(r"\$21\.03|< ?\$20|under \$20", page.read_text("utf-8"))]
    assert pages == []
