"""The numbers that docs/guide/appstore-numbers.md states are those of the code."""

from __future__ import annotations

from tests.stated_numbers import in_code, stated


def test_the_page_of_numbers_has_the_numbers_of_the_code() -> None:
    shown = stated("guide/appstore-numbers.md")

    assert len(shown) >= 150
    assert shown == in_code(shown, "penstock_systems.appstore")
