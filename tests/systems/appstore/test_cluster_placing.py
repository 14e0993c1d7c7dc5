"""Where an app belongs that hardly any search shows: its title and its genre say so, and a brand says nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_systems.appstore.cluster import placing
from penstock_systems.appstore.cluster.communities import NONE
from penstock_systems.appstore.cluster.graph import Ints
from penstock_systems.appstore.cluster.members import members
from penstock_systems.appstore.cluster.placing import WEIGHT_LEAST, placed
from penstock_systems.appstore.cluster.titles import Said, said
from penstock_systems.appstore.keywords import words
from tests.systems.appstore.market_rows import HOSTILE
from tests.systems.appstore.test_cluster_graph import ranked

pytestmark = pytest.mark.slow("postgres")

# Two markets of three keywords, with eight apps each that rank for all of them; app 16 ranks last for one of the second.
SLEEP, MONEY, LATE = tuple(range(8)), tuple(range(8, 16)), 16
LISTS = [SLEEP, SLEEP, SLEEP, MONEY, MONEY, (*MONEY, LATE)]
LABELS = np.array([0, 0, 0, 1, 1, 1], np.int32)
TITLES = [*(f"Sleep Sounds {name}" for name in "abcdefgh"), *(f"Budget Planner {name}" for name in "abcdefgh")]


def laid(
    last: str, *, genre: dict[int, int] | None = None, lists: Sequence[Sequence[int]] = LISTS
) -> tuple[Ints, list[float]]:
    """The markets and weights of the apps, the last of which has this title."""
    rankings = ranked(lists, developer={app: app for app in range(17)}, genre=genre)
    told = np.ones(len(lists), np.float32)
    sure = members(rankings, LABELS, told)[0]
    assert sure.tolist() == [0] * 8 + [1] * 8 + [NONE]
    found, weight = placed(rankings, LABELS, told, sure, said([*TITLES, last], rankings.developer))
    return found, weight.tolist()


@pytest.mark.spec("B5-01")
def test_an_app_that_one_search_shows_belongs_where_its_title_points() -> None:
    found, weight = laid("Sleep Sounds for nights")
    assert found[LATE] == 0
    assert weight[LATE] == pytest.approx(WEIGHT_LEAST), "no search of that market shows it"
    found, weight = laid("Budget Planner for months")
    assert found[LATE] == 1
    assert 0.0 < weight[LATE] < 1.0
    assert found.tolist()[:16] == [0] * 8 + [1] * 8


def test_where_title_and_searches_do_not_agree_the_genre_decides() -> None:
    genres = dict.fromkeys(SLEEP, 0) | dict.fromkeys(MONEY, 1)
    assert laid("Sleep", genre=genres)[0][LATE] == NONE
    assert laid("Sleep", genre=genres | {LATE: 0})[0][LATE] == 0
    assert laid("Sleep", genre=genres | {LATE: 1})[0][LATE] == 1


def test_an_app_that_nothing_speaks_for_belongs_nowhere() -> None:
    lists = [*LISTS[:5], MONEY, (LATE,)]
    rankings = ranked(lists, developer={app: app for app in range(17)})
    labels, told = np.append(LABELS, np.int32(NONE)), np.ones(7, np.float32)
    sure = members(rankings, labels, told)[0]
    found, weight = placed(rankings, labels, told, sure, said([*TITLES, "Chess"], rankings.developer))
    assert found[LATE] == NONE
    assert weight[LATE] == 0.0


def test_without_titles_and_genres_every_app_stays_where_it_is_seen() -> None:
    rankings = ranked(LISTS)
    told = np.ones(6, np.float32)
    sure = members(rankings, LABELS, told)[0]
    found, _ = placed(rankings, LABELS, told, sure, said([""] * 17, rankings.developer))
    assert found.tolist()[:16] == sure.tolist()[:16]
    none = np.full(6, NONE, np.int32)
    nowhere, weight = placed(rankings, none, told, np.full(17, NONE, np.int32), said([""] * 17, rankings.developer))
    assert set(nowhere.tolist()) == {NONE}
    assert set(weight.tolist()) == {0.0}


def test_the_blocks_in_which_apps_are_decided_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = laid("Sleep Sounds for nights")
    monkeypatch.setattr(placing, "BLOCK_APPS", 3)
    parts = laid("Sleep Sounds for nights")
    assert whole[0].tolist() == parts[0].tolist()
    assert whole[1] == parts[1]


def test_a_word_that_is_in_very_many_markets_points_to_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert laid("Sleep Sounds for nights")[0][LATE] == 0
    monkeypatch.setattr(placing, "WORD_MARKETS_MAX", 0)
    assert laid("Sleep Sounds for nights")[0][LATE] == 1


# -- titles ---------------------------------------------------------------------------------------------------


def told(titles: list[str], developers: list[int]) -> Said:
    return said(titles, np.array(developers, np.int32))


def test_an_unknown_developer_is_none_of_the_known_ones() -> None:
    found = told(["Rain Radar", "Rain Sounds", "Rain Alarm"], [-1, 5, 5])

    assert found.developers[found.words.index("rain")] == 2


def test_a_word_of_one_developer_is_a_brand_however_many_apps_have_it() -> None:
    found = told(["Zumba Sleep", "Zumba Budget", "Noka Sleep", "Noka: the Rain"], [1, 1, 2, 2])
    assert found.common == {"sleep"}
    assert dict(zip(found.words, found.developers.tolist(), strict=True))["zumba"] == 1
    unknown = told(["Sleep one", "Sleep two"], [-1, -1])
    assert unknown.common == {"sleep"}, "whose developer nobody knows has one of its own"


def test_what_is_said_twice_in_a_title_counts_once_and_what_says_nothing_not_at_all() -> None:
    found = told(["Rain, rain and the rain", "The Rain"], [1, 2])
    assert found.titles.toarray()[:, found.words.index("rain")].tolist() == [1.0, 1.0]
    assert found.common == {"rain"}
    assert told([], []).common == frozenset()


@given(
    st.lists(st.one_of(st.text(max_size=40), st.sampled_from(HOSTILE), st.from_regex("[ -~]{0,40}", fullmatch=True)))
)
def test_the_words_of_a_title_are_those_that_the_crawl_searches_for(titles: list[str]) -> None:
    found = told([*titles, *titles], list(range(2 * len(titles))))
    for title in titles:
        assert set(words(title)) <= found.common
