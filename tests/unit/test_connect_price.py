"""Prices as people write them, by language and currency; the list was written before the code that reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.connect.price import AMOUNT_MAX, parse_price

WRITTEN = [
    line.split("\t")
    for line in Path(__file__).with_name("prices.tsv").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]


def test_at_least_97_of_100_prices_are_read_right(note: Callable[[str], None]) -> None:
    wrong = []
    for language, text, amount, currency in WRITTEN:
        expected = (float(amount) if amount else None, currency or None)
        found = parse_price(text)
        if found != expected:
            wrong.append(f"{language} {text!r}: {found.amount} {found.currency} instead of {amount} {currency}")
    note(f"prices: {len(WRITTEN) - len(wrong)} of {len(WRITTEN)} read right")
    assert len(WRITTEN) >= 200
    assert len(wrong) <= 0.03 * len(WRITTEN), "\n".join(wrong)


@given(st.text(max_size=400))
def test_any_text_has_a_bounded_amount_or_none(text: str) -> None:
    amount = parse_price(text).amount
    assert amount is None or 0 <= amount <= AMOUNT_MAX
