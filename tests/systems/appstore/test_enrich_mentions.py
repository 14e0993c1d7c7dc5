"""Which keywords an app's own texts hold."""

from __future__ import annotations

import pytest

from penstock_systems.appstore.enrich.mentions import MENTIONS_MAX, mentions

pytestmark = pytest.mark.slow("postgres")


def counted(*texts: str | None) -> dict[str, tuple[str, int]]:
    title, subtitle, description = (*texts, None, None)[:3]
    return {each.keyword: (each.field, each.count) for each in mentions(title, subtitle, description)}


@pytest.mark.spec("B3-05")
def test_a_keyword_is_reported_with_its_first_place_and_its_number_of_places() -> None:
    told = counted("Calm Sleep", "Meditation & sleep", "Sleep better. Deep sleep sounds; asleep in minutes.")
    assert told["calm sleep"] == ("title", 1)
    assert told["sleep"] == ("title", 4)
    assert told["meditation sleep"] == ("subtitle", 1)
    assert told["sounds"] == ("description", 1)
    assert "calm meditation" not in told  # made of both, said by neither


def test_part_of_a_word_is_not_the_word() -> None:
    assert counted("Cal", None, "Calendar, calm, cal")["cal"] == ("title", 2)


def test_scripts_without_spaces_are_found_inside_their_lines() -> None:
    told = counted("記帳", None, "每天記帳，輕鬆記帳。")
    assert told["記帳"] == ("title", 3)


@pytest.mark.parametrize(
    "text", ["", " ", "\x00\x07", "=1+1", "<b>", "👩‍👩‍👧", "\u202e\u05d0", "a " * 9_000, "word" * 9_000, "%_'; --"]
)
def test_hostile_texts_are_only_texts(text: str) -> None:
    for told in (mentions(text, text, text), mentions(text, None, None), mentions(None, None, text)):
        assert len(told) <= MENTIONS_MAX
        assert all(each.keyword.strip() and each.count > 0 for each in told)


@pytest.mark.spec("G2-46")
def test_the_list_is_bounded_and_names_nothing_twice() -> None:
    many = " ".join(f"keyword{number}" for number in range(500))
    told = [each.keyword for each in mentions(many, many, many)]
    assert 0 < len(told) <= MENTIONS_MAX
    assert len(set(told)) == len(told)
