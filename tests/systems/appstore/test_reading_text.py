"""What strangers wrote, shown: on one line, in its own direction, and in a spreadsheet as text."""

from __future__ import annotations

import csv
import io
import re

import pytest

from penstock_systems.appstore.reading.shown import TURNS, calm, cut, moment_shown, number, signed
from penstock_systems.appstore.reading.spreadsheet import cell, csv_text
from tests.systems.appstore.market_rows import HOSTILE

pytestmark = pytest.mark.only_on("sqlite")


@pytest.mark.parametrize("text", [*HOSTILE, "a\u2028b\u2029c\x85d", "\ufdd0\uffff\U0001ffff", "\x00\x01\x7f", "\t \n"])
def test_calm_text_has_no_control_characters_and_turns_nothing(text: str) -> None:
    shown = calm(text)

    assert shown.splitlines() in ([shown], [])
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\ufdd0-\ufdef\uffff]", shown)
    assert not TURNS & set(shown)


def test_calm_text_keeps_letters_of_every_script_and_joined_emoji() -> None:
    assert calm("  عادات   يومية ") == "عادات يومية"
    assert calm("👩‍👩‍👧 habits 🇯🇵") == "👩‍👩‍👧 habits 🇯🇵"


@pytest.mark.parametrize(
    "text, most, shown", [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("e\u0301e\u0301", 3, "e\u0301…"), ("a👩‍👩b", 4, "a…")]
)
def test_a_cut_tears_no_character_from_its_marks(text: str, most: int, shown: str) -> None:
    assert cut(text, most) == shown


def test_numbers_are_shown_alike_everywhere() -> None:
    assert [number(None), number(1_234_567), number(2.345, 2), number(-0.01, 1)] == ["-", "1,234,567", "2.35", "0.0"]
    assert [signed(None), signed(1.26), signed(-1.26), signed(0.01)] == ["-", "+1.3", "-1.3", "0.0"]
    assert [moment_shown(None), moment_shown("2026-01-06 18:05:00")] == ["-", "6 Jan 2026, 18:05"]


# -- spreadsheets ---------------------------------------------------------------------------------------------------


@pytest.mark.fault("F44")
@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@now", " =1", "\t=1", "\r\n@x", "\u202e=1", "\x00-1"])
def test_no_cell_is_a_formula(text: str) -> None:
    assert cell(text)[0] == "'"


def test_numbers_stay_numbers_also_below_zero() -> None:
    assert [cell(-3.5), cell(-2), cell(None), cell(True), cell([1, "=x"])] == ["-3.5", "-2", "", "true", '[1,"=x"]']


def test_what_is_written_is_read_back_by_the_rules_of_csv() -> None:
    rows = [{"id": number, "name": title, "more": ["a", 1]} for number, title in enumerate(HOSTILE)]

    text = csv_text(rows, ["id", "name", "more"])

    assert text.endswith("\r\n")
    assert "\n" not in text.replace("\r\n", "")
    read = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert read[0] == ["id", "name", "more"]
    assert [row[1].removeprefix("'") for row in read[1:]] == [calm(title) for title in HOSTILE]
    assert {len(row) for row in read} == {3}


def test_a_table_without_rows_still_has_its_header() -> None:
    assert csv_text([], ["a", "b"]) == "a,b\r\n"


@pytest.mark.parametrize(
    "before",
    ["", "\ufeff", "\u200b", "\u2060", "\u00ad", "\u3000", "\u200d\ufeff "],
    ids=lambda text: text.encode("unicode-escape").decode(),
)
@pytest.mark.parametrize("start", ["=", "+", "-", "@", "＝", "＋", "－", "＠", "﹢"])
def test_no_spelling_of_a_formula_is_run_by_a_spreadsheet(before: str, start: str) -> None:
    assert cell(f"{before}{start}1+1").startswith("'")


def test_a_byte_order_mark_is_not_shown() -> None:
    assert calm("\ufeffShop\ufeff 1") == "Shop 1"
