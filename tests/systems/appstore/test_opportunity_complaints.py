"""Complaints: which terms of unhappy reviews are named, in which order, and the sentence that is quoted for each."""

from __future__ import annotations

import msgspec
import pytest

from penstock_systems.appstore.opportunity.complaints import Said, complaints

pytestmark = pytest.mark.only_on("sqlite")  # nothing here is kept anywhere


def review(number: int, body: str, *, rating: int = 1, sentiment: float | None = None, title: str = "") -> Said:
    day = f"2026-01-{number + 1:02}T08:00:00Z"
    return Said(f"r{number:02}", number, f"App {number}", rating, title, body, sentiment, day)


def happy(count: int = 20) -> list[Said]:
    return [review(number, "Lovely rain and birds.", rating=5) for number in range(count)]


def terms(*unhappy: Said) -> list[str]:
    return [each.term for each in complaints([*unhappy, *happy()])]


def test_a_term_needs_three_unhappy_reviews() -> None:
    said = [review(number, f"Crashes {word}.") for number, word in enumerate(("constantly", "nightly", "instantly"))]

    assert terms(*said[:2]) == []
    assert terms(*said) == ["crashes"]


def test_a_term_that_happy_reviews_use_as_often_is_no_complaint() -> None:
    assert terms(*(review(number, "Rain crashes.") for number in range(3))) == ["rain crashes"]
    assert terms(*(review(number, "Rain.") for number in range(3))) == []


@pytest.mark.parametrize(
    "rating, sentiment, is_unhappy",
    [
        (1, None, True),
        (2, None, True),
        (3, None, False),
        (1, 0.9, False),  # what the text says counts before the stars
        (5, -0.9, True),
        (5, 0.0, False),
    ],
)
def test_a_review_is_unhappy_by_its_tone_or_where_none_is_known_by_its_stars(
    rating: int, sentiment: float | None, is_unhappy: bool
) -> None:
    assert review(0, "", rating=rating, sentiment=sentiment).is_unhappy is is_unhappy


def test_the_four_most_telling_complaints_are_named_and_the_one_that_most_share_comes_first() -> None:
    words = ["crashes", "adverts", "subscription", "freezes", "login"]
    said = [
        review(10 * place + number, f"{word} {number}")
        for place, word in enumerate(words)
        for number in range(3 + (word == "freezes"))
    ]
    days = [review(number % 28, each.body or "") for number, each in enumerate(said)]

    found = terms(*days)

    assert found[0] == "freezes"
    assert len(found) == 4
    assert set(found) < set(words)


def test_terms_that_more_than_half_of_the_same_reviews_use_are_one_complaint() -> None:
    together = [review(number, "Adverts freeze.") for number in range(4)]
    apart = [review(number + 4, "Adverts.") for number in range(4)] + [
        review(number + 8, "Freeze.") for number in range(4)
    ]

    assert terms(*together) == ["adverts freeze"]
    assert set(terms(*together, *apart)) == {"adverts", "freeze"}


def test_a_pair_of_words_needs_both_to_say_something_and_a_word_three_letters() -> None:
    assert terms(*(review(number, "The login. It is ad ad.") for number in range(3))) == ["login"]
    assert complaints([review(number, "Login.") for number in range(3)] + happy(), without=["login"]) == []


def test_a_pair_of_words_lies_within_one_sentence() -> None:
    assert terms(*(review(number, "Battery drain!") for number in range(3))) == ["battery drain"]
    assert terms(*(review(number, "The battery. Drain it!") for number in range(3))) == ["battery"]


def test_each_complaint_is_quoted_from_an_app_of_its_own_if_it_has_one() -> None:
    login = [review(number, "The login.") for number in range(4)]
    both = [
        Said(f"b{at}", 9, "App 9", 1, None, text, None, "2026-01-20T08:00:00Z")
        for at, text in enumerate(
            ["The login needs three attempts since the last one.", "Adverts are between all of these."] * 3
        )
    ]

    found = complaints([*login, *both, *(review(number, "Adverts.") for number in range(3)), *happy()])

    assert [each.term for each in found][:2] == ["login", "adverts"]
    assert len({each.track_id for each in found[:2]}) == 2


def test_the_title_of_a_review_is_read_too_and_the_beginning_of_a_long_text() -> None:
    assert terms(*(review(number, "", title="Crashes") for number in range(3))) == ["crashes"]
    assert terms(*(review(number, "the " * 500 + "crashes") for number in range(3))) == []


def test_the_sentence_that_is_nearest_to_70_characters_is_quoted_with_its_review() -> None:
    long = "It crashes " + "and " * 30 + "nothing helps"
    best = "Since the update it crashes whenever I close the sounds of the night."
    said = [review(1, f"Crashes! {long}. {best} Bye."), review(2, "Crashes."), review(3, "Crashes?")]

    [found] = [each for each in complaints([*said, *happy()]) if each.term == "crashes"]

    assert (found.quote, found.review_id, found.track_id, found.app) == (best, "r01", 1, "App 1")
    assert (found.reviews, found.at) == (3, "2026-01-02")


def test_the_ten_newest_reviews_are_quoted() -> None:
    old = review(0, "Since the update it crashes whenever I close the sounds of the night.")
    newer = [review(number, "Crashes.") for number in range(1, 11)]

    [found] = [each for each in complaints([old, *newer, *happy()]) if each.term == "crashes"]

    assert (found.quote, found.review_id) == ("Crashes.", "r10")


def test_a_long_sentence_is_cut_and_ends_with_an_ellipsis() -> None:
    body = "Crashes " + "the " * 99
    [found] = [
        each
        for each in complaints([*(review(number, body) for number in range(3)), *happy()])
        if each.term == "crashes"
    ]

    assert found.quote == "Crashes " + "the " * 37 + "the\u2026"


def test_a_sentence_with_a_typographic_apostrophe_is_quoted_as_it_was_written() -> None:
    said = [review(number, "My screen\u2019s the. Goodbye the") for number in range(3)]

    [found] = [each for each in complaints([*said, *happy()]) if each.term.startswith("screen's")]

    assert found.quote == "My screen\u2019s the."


def test_an_old_review_is_quoted_only_where_there_is_no_newer_one() -> None:
    said = [review(number, f"Crashes {number}.", title=f"{number}") for number in range(3)]
    old = [
        msgspec.structs.replace(each, at=f"2019{each.at[4:]}", body="It crashes whenever I open a list of sounds.")
        for each in said
    ]

    (recent,) = complaints([said[0], *old[1:], *happy()])
    (only,) = complaints([*old, *happy()])

    assert recent.reviews == only.reviews == 3
    assert (recent.at[:4], only.at[:4]) == ("2026", "2019")


@pytest.mark.parametrize("which", ["any", "every", "no", "some"])
@pytest.mark.parametrize("person", ["body", "one"])
def test_a_word_for_a_person_is_no_complaint(which: str, person: str) -> None:
    said = [review(number, f"Sync fails and {which}{person} complains.") for number in range(3)]

    assert not any(f"{which}{person}" in term.split() for term in terms(*said))
