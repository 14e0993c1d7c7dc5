"""Keywords: what is made of titles, in whatever script, and what is made of titles that mean no good."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_systems.appstore.keywords import (
    KEYWORD_CHARACTERS_MAX,
    KEYWORDS_A_TITLE,
    STOP_WORDS,
    Letters,
    discovered,
    normal,
    of_app,
    words,
)
from penstock_systems.appstore.settings import Settings

pytestmark = pytest.mark.only_on("sqlite")  # nothing here is kept anywhere

SLEEP = ["sleep", "meditation", "calm sleep", "sleep meditation", "calm sleep meditation"]


@pytest.mark.spec("B2-19", "G2-27")
@pytest.mark.parametrize("letters", ["latin", "any"])
def test_a_title_gives_its_long_words_its_pairs_and_itself(letters: Letters) -> None:
    assert discovered("Calm Sleep Meditation App", letters) == SLEEP
    assert discovered("CALM: Sleep & Meditation (Free) - for iPhone", letters) == SLEEP


@pytest.mark.spec("B2-19", "G2-28")
def test_keywords_have_the_letters_of_the_storefront_unless_a_deployment_says_otherwise() -> None:
    title = "Crème 24: 記録"
    assert discovered(title, Settings(country="us").alphabet) == ["creme"]
    assert discovered(title, Settings(country="jp").alphabet)[:2] == ["crème", "記録"]
    assert Settings(country="us", letters="any").alphabet == "any"


@pytest.mark.spec("B2-19")
@pytest.mark.parametrize(
    "title, made",
    [
        ("Budget", ["budget"]),  # one word is no short title, it is a long word
        ("Go", []),
        ("The Best App for You", []),
        ("Word Note", ["word note"]),  # the pair is the title: once
        ("One Two Six Ten Red", ["one two", "two six", "six ten", "ten red"]),  # five words are no short title
        ("Kid's Maths", ["maths", "kids maths"]),
        ("Sleep Sleep Sleep", ["sleep", "sleep sleep", "sleep sleep sleep"]),
    ],
)
def test_the_rule_for_what_was_just_found_at_its_edges(title: str, made: list[str]) -> None:
    assert discovered(title, "latin") == made


def test_the_first_300_characters_of_a_text_are_read() -> None:
    assert words(" " * 295 + "maths") == ["maths"]
    assert words(" " * 296 + "maths") == ["math"]


def test_an_app_gives_25_keywords_at_most() -> None:
    title, subtitle = (" ".join(f"{first}word{n}" for n in "abcdefghijkl") for first in "xy")

    assert len(of_app(title, subtitle)) == 25


def test_the_first_letter_decides_how_long_a_word_of_another_script_has_to_be() -> None:
    assert discovered("\uac00b") == ["\uac00b"]  # Korean: two letters are enough
    assert discovered("b\uac00") == []


@pytest.mark.spec("B2-20", "G2-27")
def test_an_app_gives_its_title_its_subtitle_their_pairs_words_of_both_and_long_words() -> None:
    assert of_app("Calm Sleep Meditation", "Relax and Breathe") == [
        "calm sleep meditation",
        "relax breathe",
        "calm sleep",
        "sleep meditation",
        "calm relax",
        "calm breathe",
        "sleep relax",
        "sleep breathe",
        "meditation relax",
        "meditation breathe",
        "sleep",
        "meditation",
        "relax",
        "breathe",
    ]


@pytest.mark.spec("B2-20")
def test_an_app_of_one_short_word_still_gives_its_name_and_a_word_is_not_crossed_with_itself() -> None:
    assert of_app("Calm") == ["calm"]
    assert of_app("Calm", "Sleep") == ["calm", "calm sleep", "sleep"]
    assert of_app("Sleep Well", "Sleep") == ["sleep well", "well sleep", "sleep"]
    assert of_app("Pro", None) == []


@pytest.mark.spec("B2-20")
def test_a_title_or_subtitle_of_five_words_is_a_keyword_and_one_of_six_is_not() -> None:
    five, six = "one two six ten red", "one two six ten red sky"
    assert five in of_app(five)
    assert six not in of_app(six)
    assert five in of_app("Calm", five)
    assert six not in of_app("Calm", six)


def test_both_rules_leave_out_the_same_words() -> None:
    for word in sorted(STOP_WORDS):
        assert words(f"Sleep {word} Sounds") == ["sleep", "sounds"]
        assert word not in " ".join(of_app(f"{word} Sleep", word)).split()
        assert word not in " ".join(discovered(f"Sleep {word} Sounds")).split()


@pytest.mark.spec("G2-28")
def test_accents_and_numbers_stay_where_any_letter_counts() -> None:
    assert discovered("Café 24", "any") == ["café", "café 24"]
    assert discovered("Cafe\u0301 24", "any") == ["café", "café 24"]
    assert discovered("Ｃａｆé ２４", "any") == ["café", "café 24"]


@pytest.mark.spec("G2-28")
def test_with_a_to_z_an_accent_goes_and_its_letter_stays() -> None:
    assert discovered("Crème Brûlée 24", "latin") == ["creme", "brulee", "creme brulee"]
    assert words("İstanbul Straße", "latin") == ["istanbul", "strasse"]
    assert words("İstanbul", "any") == ["istanbul"]


@pytest.mark.spec("G2-28")
@pytest.mark.parametrize(
    "title, made",
    [
        ("記録 計画", ["記録", "計画", "記録 計画"]),
        ("睡眠記録アプリ", ["睡眠記録アプリ"]),  # no space, no guess where a word would end
        ("Suica計画", ["suica", "計画", "suica 計画"]),
        ("기록 계획", ["기록", "계획", "기록 계획"]),
        ("ट्रैकर योजना", ["ट्रैकर", "योजना", "ट्रैकर योजना"]),  # its vowels are marks, not letters
        ("متتبع مخطط", ["متتبع", "مخطط", "متتبع مخطط"]),
        ("מעקב תכנון", ["מעקב", "תכנון", "מעקב תכנון"]),
        ("трекер для", ["трекер", "трекер для"]),
        ("เกมไทย", ["เกมไทย"]),
    ],
)
def test_titles_in_other_scripts_do_not_vanish(title: str, made: list[str]) -> None:
    assert discovered(title, "any") == made
    assert discovered(f"\u202e{title}\u202c", "any") == made


@pytest.mark.parametrize("letters", ["latin", "any"])
@pytest.mark.parametrize(
    "title",
    [
        "",
        " \t\n\0",
        "\x00\x1b[31mSleep\x07 Sounds",
        '=HYPERLINK("https://evil.example","Sleep")',
        "<script>alert('Sleep Sounds')</script>",
        "'; drop table app_registry; --",
        "👩‍👩‍👧‍👦🏳️‍🌈 Sleep 🛌🏽",
        "a\u0301\u0301\u0301" * 200,
        "\u0301\u0302sleep",
        "\ud800 Sleep \udfff",
        "٣ ๔ ² ½ Ⅷ",
        "x" * 10_000,
        "word " * 10_000,
        " ".join(f"different{number}" for number in range(1_000)),
        "々〇ーゝ",
    ],
)
def test_whatever_a_title_holds_its_keywords_are_few_short_and_plain(title: str, letters: Letters) -> None:
    for made in (discovered(title, letters), of_app(title, title, letters)):
        assert len(made) <= KEYWORDS_A_TITLE
        assert len(set(made)) == len(made)
        for keyword in made:
            assert 0 < len(keyword) <= KEYWORD_CHARACTERS_MAX
            assert keyword == " ".join(keyword.split()) == normal(keyword, letters)
            assert all(letter == " " or letter.isalnum() or not letter.isascii() for letter in keyword)
            keyword.encode()


def test_what_a_person_types_is_kept_as_they_mean_it() -> None:
    assert normal("  The Best  Budget-App! ") == "the best budget app"
    assert normal("\u202eBudget\u202c") == "budget"
    assert normal("!?") is None
    assert normal("word " * 20) is None


@pytest.mark.parametrize("letters", ["latin", "any"])
@given(title=st.text(st.characters(codec="ascii") | st.sampled_from("•–—…“”’"), max_size=80))
def test_the_short_way_for_plain_letters_gives_what_the_long_way_gives(title: str, letters: Letters) -> None:
    silent = "\u200d"  # it parts no word, and makes the text one of many scripts
    assert discovered(title, letters) == discovered(title + silent, letters)
    assert words(title, letters) == words(silent + title, letters)
