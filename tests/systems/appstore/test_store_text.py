"""The border for text and numbers: hostile in, harmless out, and every script still readable."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock_systems.appstore.store.prices import is_price, purchases_of
from penstock_systems.appstore.store.text import PROSE_CHARACTERS_MAX, TITLE_CHARACTERS_MAX, address, cleaned, prose
from penstock_systems.appstore.store.values import amount, count, fraction, identity, linked_id, moment, stars, whole
from tests.systems.appstore.store_shapes import check_facts


@pytest.fixture(autouse=True)
def kept_on() -> None:
    """Nothing here is kept anywhere."""


@pytest.mark.parametrize(
    "text",
    [
        "Pocket Ledger: Budget",
        "יומן תקציב 24",
        "مفكرة الميزانية",
        "\u200eWhatsApp\u200f!",  # marks of direction that change nothing around them
        "家計簿",
        "👩‍👩‍👧 family ☎️",
        "=HYPERLINK(1)",
        "<script>alert(1)</script>",
        "\uf8ff",  # the apple
    ],
)
def test_ordinary_text_of_every_script_stays_as_it_is(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(
    "text, left",
    [
        ("  two \t\n words\u00a0 ", "two words"),
        ("a\x00b\x1bc\x9fd\x7f", "abcd"),
        ("good\u202egnp.exe\u202c", "goodgnp.exe"),
        ("a\u2066b\u2069c\u202ad", "abcd"),
        ("half \ud83d smile", "half smile"),
        ("\ufeffmark\u200b\ufffe\U0010ffff", "mark"),
        ("cafe\u0301", "café"),
    ],
)
def test_what_harms_a_screen_or_a_neighbour_is_taken_out(text: str, left: str) -> None:
    assert cleaned(text) == left


@pytest.mark.parametrize("text", ["", "   ", "\x00\x01", "\u202e\u202c", "\u200d\u200e", "\u0301", None, 7, ["x"]])
def test_what_cannot_be_seen_was_not_said(text: object) -> None:
    assert cleaned(text) is None


def test_prose_keeps_its_lines_and_one_empty_line() -> None:
    assert prose("  one\r\ntwo\u2028three  x\n \n\n\n\tfour\v ") == "one\ntwo\nthree x\n\nfour"


def test_long_text_is_cut_between_letters() -> None:
    assert cleaned("x" * 5_000) == "x" * TITLE_CHARACTERS_MAX
    assert len(prose("word " * 100_000) or "") <= PROSE_CHARACTERS_MAX
    assert cleaned("ab" + "👩‍👩‍👧", characters_max=4) == "ab"
    assert cleaned("abx̂̂", characters_max=3) == "ab"  # there is no single letter for x with a hat


def test_a_tower_of_accents_is_cut_down_before_it_is_sorted() -> None:
    tower = prose("a" + "\u0323\u0301" * 40_000)
    assert tower is not None
    assert len(tower) <= 31


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "file:///etc/passwd", "https://a b", 'https://a/"x', "https://\u202ea", "//a", "", None, 1],
)
def test_an_address_that_does_not_lead_to_the_web_leads_nowhere(url: object) -> None:
    assert address(url) is None
    assert address("https://x.example/" + "a" * 3_000) is None


def test_an_address_of_the_web_is_kept() -> None:
    assert address(" https://apps.apple.com/us/app/x/id1?uo=4 ") == "https://apps.apple.com/us/app/x/id1?uo=4"
    assert address("http://bücher.example/ü") == "http://bücher.example/ü"


@given(st.text(st.characters(categories=None), max_size=400), st.booleans())
@example("\n\u2028\r", True)
@example("\u0344" * 40, False)
def test_any_text_is_harmless_after_the_border_and_stays_so(text: str, lines: bool) -> None:
    once = cleaned(text, lines=lines)
    check_facts(once)
    assert once is None or cleaned(once, lines=lines) == once
    assert once is None or lines or "\n" not in once


@given(st.text(st.characters(min_codepoint=0x590, max_codepoint=0x6FF, categories=["Lo"]), min_size=1, max_size=200))
def test_letters_written_from_right_to_left_are_all_kept(text: str) -> None:
    assert cleaned(text) == unicodedata.normalize("NFC", text)


# -- numbers, ids, times ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, number",
    [(17, 17), ("17", 17), (" 17 ", 17), (17.0, 17), (2**63 - 1, 2**63 - 1), (str(2**63 - 1), 2**63 - 1)],
)
def test_an_id_is_read_however_it_is_written(value: object, number: int) -> None:
    assert identity(value) == number


@pytest.mark.parametrize(
    "value",
    [0, -1, 2**63, str(2**63), 1.5, True, "1e3", "0x11", "١٧", "", None, [17], float("inf"), float("nan"), "9" * 5_000],
)
def test_what_no_column_can_hold_is_no_id(value: object) -> None:
    assert identity(value) is None


def test_numbers_are_finite_and_in_range_or_not_said() -> None:
    assert stars("4.61") == 4.61
    assert [stars(value) for value in (0, 0.0, 5.01, "nan", float("nan"), None, True, 10**400)] == [None] * 8
    assert fraction(10**400, low=0, high=1e9) is None
    assert whole(0) == 0
    assert linked_id("https://apps.apple.com/us/developer/x-id7/id900001?uo=2") == 900_001
    assert linked_id("https://apps.apple.com/us/developer/x") is None


@pytest.mark.parametrize(
    "text, at",
    [
        ("2026-01-31T08:00:00Z", "2026-01-31 08:00:00"),
        ("2021-05-04T00:00:00-07:00", "2021-05-04 07:00:00"),
        ("2026-01-31", "2026-01-31 00:00:00"),
        ("2026-10-30T17:20:11.123Z", "2026-10-30 17:20:11"),
        ("Thu Oct 01 2026 06:49:33 GMT+0000 (Coordinated Universal Time)", "2026-10-01 06:49:33"),
        ("Thu Oct 01 2026 06:49:33 GMT-0730", "2026-10-01 14:19:33"),
        ("Thu Feb 30 2026 06:49:33 GMT+0000", None),
        ("Thu Foo 01 2026 06:49:33 GMT+0000", None),
        ("Oct 30, 2026", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("yesterday", None),
        (1_700_000_000, None),
        (None, None),
    ],
)
def test_times_are_kept_as_the_tables_keep_them(text: object, at: str | None) -> None:
    assert moment(text) == at


@pytest.mark.parametrize(
    "text, number",
    [
        ("$29.99", 29.99),
        ("29,99 €", 29.99),
        ("NT$ 3,290", 3_290),
        ("1.299,00 €", 1_299),
        ("1\u202f299,00 €", 1_299),
        ("CHF 1’299.50", 1_299.5),
        ("₹ 1,99,900.00", 199_900),
        ("¥1,200", 1_200),
        ("KWD 0.999", 0.999),
        ("₪ 19.9", 19.9),
        ("١٢٫٩٩ ر.س", 12.99),
        ("4.990 ₫", 4_990),
        ("Free", None),
        ("", None),
        ("9" * 40, None),
    ],
)
def test_the_number_in_a_price_is_found_in_every_notation(text: str, number: float | None) -> None:
    assert amount(text) == number


def test_counts_have_marks_between_their_thousands() -> None:
    assert [count(text) for text in ("3,624 Ratings", "3.624 Bewertungen", "3 624 notes", "no ratings")] == [
        3_624,
        3_624,
        3_624,
        None,
    ]
    assert count("3.6K Ratings") is None


def test_money_is_distinguished_from_other_numbers() -> None:
    assert all(map(is_price, ["$1.99", "29,99 €", "CHF 5.00", "kr 99", "NT$ 3,290"]))
    assert not any(map(is_price, ["Requires iOS 16.0 or later.", "4+", "83.2 MB", "Yes", "$" * 60 + "1", None]))


@pytest.mark.spec("G2-46")
def test_a_list_of_purchases_has_an_end() -> None:
    purchases, skipped = purchases_of((f"Pack {number}", f"${number}.99") for number in range(5_000))
    assert (len(purchases), skipped) == (100, 0)
    assert (purchases[1].name, purchases[1].price, purchases[1].amount) == ("Pack 1", "$1.99", 1.99)
