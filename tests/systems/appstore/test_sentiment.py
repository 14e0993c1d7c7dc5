"""The tone of a review: what it hears, what it does not fall for, and that it never leaves its scale."""

from __future__ import annotations

import random
import re

import pytest

from penstock_systems.appstore import sentiment as module
from penstock_systems.appstore.sentiment import sentiment

pytestmark = [pytest.mark.slow("postgres"), pytest.mark.spec("B3-05")]


@pytest.mark.parametrize(
    "title, body, stars, expected",
    [
        ("", "", None, 0.0),
        ("", "", 5, 1.0),
        ("", "", 3, 0.0),
        ("", "", 1, -1.0),
        ("Love it", "", None, 1.0),
        ("Love it", "", 5, 1.0),
        ("Scam", "Lost my data, useless", 1, -1.0),
        ("Scam", "Lost my data, useless", None, -1.0),
        ("Fine", "Great, but it crashes", 3, 0.2),
        ("", "great", 1, round((2 * -1 + 1) / 3, 4)),
        ("", "very bad but good", None, round((1 - 1.5) / 2.5, 4)),
    ],
)
def test_stars_say_what_to_expect_and_words_move_it(title: str, body: str, stars: int | None, expected: float) -> None:
    assert sentiment(title, body, stars) == expected


@pytest.mark.parametrize(
    "praise, blame",
    [
        ("good", "not good"),
        ("it is good", "it isn't good"),
        ("it is good", "it isn\u2019t good"),
        ("works", "doesn\u2019t work, useless"),
        ("not bad at all", "bad"),
        ("no problems", "problems"),
        ("never crashes", "crashes"),
        ("great for work", "it will not open"),
    ],
)
def test_a_negation_turns_what_follows_it(praise: str, blame: str) -> None:
    assert sentiment("", praise) > 0 > sentiment("", blame)


def test_a_negation_does_not_reach_past_a_turn_nor_far() -> None:
    assert sentiment("", "not cheap, but good") == 1.0
    assert sentiment("", "not cheap. Good") == 1.0
    assert sentiment("", "I would not say anything else today: good") == 1.0


def test_more_blame_never_sounds_better() -> None:
    told = [sentiment("", "good " + "bad " * times, 4) for times in range(20)]
    assert told == sorted(told, reverse=True)


@pytest.mark.parametrize(
    "text",
    [
        "\x00\x07 bad \ud800",
        "\u05d0\u05d4\u05d1\u05ea\u05d9 \u05de\u05d0\u05d5\u05d3",
        "👩‍👩‍👧‍👦🔥🔥🔥",
        '=HYPERLINK("http://x")',
        "<script>alert('love')</script>",
        "bad" * 100_000,
        "bad " * 100_000,
        "\u0301" * 5_000,
        "'" * 50_000,
    ],
)
def test_hostile_text_has_a_tone_too(text: str) -> None:
    for stars in (None, -7, 1, 3, 5, 99):
        assert -1 <= sentiment(text, text, stars) <= 1


def test_any_mixture_of_its_words_stays_on_the_scale_and_repeats(seed: int) -> None:
    chance = random.Random(seed)
    known = sorted(module.PRAISE | module.BLAME | module.NEGATIONS | module.STRONGER | module.MISSED | module.ENDS)
    for _ in range(300):
        text = " ".join(chance.choices(known, k=chance.randrange(60)))
        stars = chance.choice((None, 1, 2, 3, 4, 5))
        assert -1 <= sentiment(text, text, stars) <= 1
        assert sentiment(text, text, stars) == sentiment(text.upper(), text.upper(), stars)


def test_no_word_is_praise_and_blame_at_once() -> None:
    lists = [module.PRAISE, module.BLAME, module.MISSED, module.NEGATIONS, module.ENDS]
    assert sum(map(len, lists)) == len(frozenset[str]().union(*lists))
    assert all(re.fullmatch("[a-z]+", word) for words in lists[:-1] for word in words)
