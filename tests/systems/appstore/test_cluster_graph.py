"""Keywords become neighbours by the apps they share, and communities by neighbours: the same input, the same markets."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock_systems.appstore.cluster import graph
from penstock_systems.appstore.cluster.communities import (
    KEYWORDS_MIN,
    NONE,
    between,
    cohesion,
    communities,
    numbered,
    resolution_for,
    without_small,
)
from penstock_systems.appstore.cluster.graph import Edges, Rankings, neighbours, telling
from penstock_systems.appstore.cluster.joining import ALIKE, grouped, joined
from penstock_systems.appstore.cluster.libraries import sparse
from penstock_systems.appstore.cluster.members import members

pytestmark = pytest.mark.slow("postgres")


def ranked(
    lists: Sequence[Sequence[int]], *, developer: dict[int, int] | None = None, genre: dict[int, int] | None = None
) -> Rankings:
    """The apps of each keyword, the first rank first."""
    apps = 1 + max((app for each in lists for app in each), default=-1)
    places = [(keyword, app, rank) for keyword, each in enumerate(lists) for rank, app in enumerate(each, 1)]
    keyword, app, rank = np.array(places, np.int32).reshape(-1, 3).T
    known = [np.array([(given or {}).get(each, -1) for each in range(apps)], np.int32) for given in (developer, genre)]
    return Rankings(keyword, app, rank, len(lists), apps, *known)


def planted(seed: int, *, markets: int = 4, keywords: int = 6, apps: int = 12) -> Rankings:
    """Markets that share nothing but one app that ranks everywhere."""
    chance = Random(seed)
    everywhere = markets * apps
    return ranked(
        [
            [*chance.sample(range(market * apps, (market + 1) * apps), 6), everywhere]
            for market in range(markets)
            for _ in range(keywords)
        ]
    )


def parted(rankings: Rankings) -> list[int]:
    edges = neighbours(rankings, telling(rankings))
    return [int(each) for each in communities(edges, rankings.keywords, resolution=1.0)]


@pytest.mark.spec("B5-01", "B5-02", "G2-44")
def test_keywords_that_share_apps_are_one_community_and_others_are_not() -> None:
    for seed in range(5):
        assert parted(planted(seed)) == [market for market in range(4) for _ in range(6)]


@pytest.mark.spec("B5-02")
def test_the_same_rankings_give_the_same_communities_in_any_order() -> None:
    rankings = planted(3, markets=6, keywords=9)
    order = np.array(Random(1).sample(range(len(rankings.keyword)), len(rankings.keyword)))
    shuffled = Rankings(
        rankings.keyword[order],
        rankings.app[order],
        rankings.rank[order],
        rankings.keywords,
        rankings.apps,
        rankings.developer,
        rankings.genre,
    )
    first, second = (neighbours(each, telling(each)) for each in (rankings, shuffled))
    assert first.a.tolist() == second.a.tolist()
    assert first.b.tolist() == second.b.tolist()
    assert parted(rankings) == parted(shuffled)


def test_the_blocks_in_which_keywords_are_compared_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rankings = planted(5, markets=7, keywords=8)
    whole = neighbours(rankings, telling(rankings))
    monkeypatch.setattr(graph, "BLOCK_PAIRS", 10)
    parts = neighbours(rankings, telling(rankings))
    assert whole.a.tolist() == parts.a.tolist()
    assert whole.b.tolist() == parts.b.tolist()
    assert whole.weight.tolist() == parts.weight.tolist()


def test_the_blocks_hold_every_keyword_once(monkeypatch: pytest.MonkeyPatch) -> None:
    keywords = sparse.csr_matrix(np.ones((7, 3), np.float32))
    monkeypatch.setattr(graph, "BLOCK_PAIRS", 45)

    blocks = list(graph._blocks(keywords, keywords.T.tocsr()))

    assert [each for start, end in blocks for each in range(start, end)] == list(range(7))
    assert len(blocks) > 1


def test_a_keyword_has_ten_neighbours_of_its_own_at_most() -> None:
    rankings = ranked([[0, 1, 2, 10 + keyword] for keyword in range(40)])
    edges = neighbours(rankings, telling(rankings))
    assert 0 < len(edges.a) <= 40 * graph.NEIGHBOURS_MAX
    assert all(a < b for a, b in zip(edges.a, edges.b, strict=True))


def test_an_app_that_ranks_for_very_many_keywords_ties_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rankings = ranked([[0, 1 + keyword] for keyword in range(20)])
    assert len(neighbours(rankings, telling(rankings)).a) > 0
    monkeypatch.setattr(graph, "APP_KEYWORDS_MAX", 19)
    assert len(neighbours(rankings, telling(rankings)).a) == 0


@pytest.mark.spec("G2-44")
def test_a_keyword_that_one_developer_holds_tells_of_no_market() -> None:
    lists = [[0, 1, 2, 3], [0, 1, 2, 3]]
    names = {0: 7, 1: 7, 2: 7, 3: 8}
    assert telling(ranked(lists, developer=names)).tolist() == [0.0, 0.0]
    assert telling(ranked(lists, developer={0: 1, 1: 2, 2: 3, 3: 4})).tolist() == [1.0, 1.0]
    assert telling(ranked(lists)).tolist() == [1.0, 1.0]  # nobody knows whose they are


def test_a_keyword_tells_the_less_the_more_genres_its_apps_are_of() -> None:
    told = telling(ranked([[0, 1, 2], [0, 3, 6], [0, 1, 3]], genre={0: 0, 1: 0, 2: 0, 3: 1, 6: 2}))
    assert told[0] == 1.0 > told[2] > told[1] > 0.0
    none = neighbours(ranked([[0, 1], [0, 1]], developer={0: 1, 1: 1}), np.zeros(2, np.float32))
    assert len(none.a) == 0


@pytest.mark.spec("B5-02")
def test_a_finer_resolution_goes_with_the_number_of_keywords() -> None:
    assert resolution_for(0) == resolution_for(10) == 0.5
    assert resolution_for(1_000) == 10.0
    assert resolution_for(180_000) == 1_800.0


def test_nothing_crawled_is_no_community() -> None:
    rankings = ranked([])
    assert parted(rankings) == []
    assert members(rankings, np.empty(0, np.int32), np.empty(0, np.float32))[0].tolist() == []


def edges_of(*pairs: tuple[int, int, float]) -> Edges:
    a, b, weight = zip(*pairs, strict=True)
    return Edges(np.array(a, np.int32), np.array(b, np.int32), np.array(weight, np.float32))


def test_a_community_of_too_few_keywords_joins_the_one_it_is_tied_to_most() -> None:
    labels = np.array([0, 0, 0, 1, 2, 2, 2, 5], np.int32)
    edges = edges_of((0, 1, 1.0), (1, 2, 1.0), (3, 0, 0.2), (3, 4, 0.5), (4, 5, 1.0), (5, 6, 1.0))
    joined = without_small(labels, edges)
    assert joined.tolist() == [0, 0, 0, 2, 2, 2, 2, NONE]  # the last is tied to none
    assert labels[3] == 1, "what was given is not changed"


def test_small_communities_may_become_a_market_together() -> None:
    labels = np.array([0, 0, 1], np.int32)
    joined = without_small(labels, edges_of((0, 1, 1.0), (1, 2, 0.5)))
    assert len(set(joined.tolist())) == 1
    assert len(joined) == KEYWORDS_MIN


def test_communities_are_counted_in_the_order_of_their_first_keyword() -> None:
    assert numbered(np.array([5, NONE, 2, 5, 9], np.int32)).tolist() == [0, NONE, 1, 0, 2]
    assert numbered(np.array([3, 1], np.int32)).tolist() == [0, 1]


def test_ties_between_communities_add_up() -> None:
    labels = np.array([0, 0, 1, 1, NONE], np.int32)
    edges = edges_of((0, 1, 1.0), (0, 2, 0.5), (1, 3, 0.25), (3, 4, 1.0))
    assert between(labels, edges) == [(0, 1, 0.75)]
    assert cohesion(labels, edges).tolist() == [1.0, 1.0, 0.0, 0.0, 0.0]


@pytest.mark.spec("B5-02", "B8-T17")
def test_an_app_belongs_where_it_is_seen_most_and_weighs_what_it_is_seen_there() -> None:
    rankings = ranked([[0, 1], [0, 1], [0, 1], [2, 1], [2, 3], [2, 3], [4, 0], [4, 0]])
    labels = np.array([0, 0, 0, 1, 1, 1, NONE, NONE], np.int32)
    belongs, weight = members(rankings, labels, np.ones(8, np.float32))
    assert belongs.tolist() == [0, 0, 1, 1, NONE]
    assert weight.tolist()[0] == weight.tolist()[2] == 1.0
    assert 0.0 < weight[1] < 1.0
    assert weight[4] == 0.0


def test_an_app_that_may_have_turned_up_by_chance_belongs_nowhere() -> None:
    rankings = ranked([[0, 1], [0, 2, 3], [0, 3, 2], [3]])
    belongs, _ = members(rankings, np.array([0, 0, 0, NONE], np.int32), np.ones(4, np.float32))
    assert belongs.tolist() == [0, NONE, 0, NONE]  # three times; once; twice and nowhere else; twice, and elsewhere too


# -- pieces become markets -----------------------------------------------------------------------------------


def alike(rows: Sequence[Sequence[float]]) -> Any:
    return sparse.csr_matrix(np.array(rows))


def test_pieces_that_are_alike_are_joined_and_others_are_not() -> None:
    found = grouped(alike([[1, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0.1, 1]]))
    assert found.tolist() == [0, 0, 1, 2]


def test_a_chain_of_likenesses_is_no_market() -> None:
    """Each is like the next, and the first is not at all like the last: on average they are not alike enough."""
    chain = [[1.0 if a == b else 0.2 if abs(a - b) == 1 else 0.0 for b in range(9)] for a in range(9)]
    assert len(set(grouped(alike(chain)).tolist())) > 2


@given(st.lists(st.lists(st.floats(0, 1), min_size=7, max_size=7), min_size=7, max_size=7))
def test_joining_in_rounds_is_the_same_as_one_pair_after_the_other(values: list[list[float]]) -> None:
    likeness = np.array(values)
    likeness = (likeness + likeness.T) / 2
    assume(len(np.unique(likeness[np.triu_indices(7, 1)])) == 21)  # among equals there may be several ways
    groups: list[list[int]] = [[number] for number in range(7)]
    while len(groups) > 1:
        means = {
            (a, b): float(np.mean([likeness[one, other] for one in groups[a] for other in groups[b]]))
            for a in range(len(groups))
            for b in range(a + 1, len(groups))
        }
        (a, b), highest = max(means.items(), key=lambda each: each[1])
        if highest < ALIKE:
            break
        groups[a] += groups.pop(b)
    found = grouped(sparse.csr_matrix(likeness)).tolist()
    together = {frozenset(at for at in range(7) if found[at] == number) for number in set(found)}
    assert together == {frozenset(each) for each in groups}


@pytest.mark.spec("B5-02")
def test_the_pieces_of_a_large_market_are_joined_by_the_apps_that_they_show() -> None:
    """Two words of one market: each shows apps of its own, and both some of the same."""
    lists = [[0, 1, 2, 10 + at % 2, 20 + at] for at in range(6)] + [[0, 1, 2, 15 + at % 2, 40 + at] for at in range(6)]
    other = [[100, 101, 102, 103, 110 + at] for at in range(6)]
    rankings = ranked([*lists, *other])
    pieces = np.array([0] * 6 + [1] * 6 + [2] * 6, np.int32)
    assert joined(rankings, pieces, np.ones(18, np.float32)).tolist() == [0] * 12 + [1] * 6
    alone = np.zeros(18, np.int32)
    assert joined(rankings, alone, np.ones(18, np.float32)).tolist() == alone.tolist()


@pytest.mark.spec("B5-02")
def test_what_was_joined_is_compared_anew_with_the_pieces_that_are_left() -> None:
    """Two pieces show the apps of a third one twice each: too seldom to count in either, often enough in both together."""
    third = [50, 51, 52, 53]
    lists = [[0, 1, 2, *(third if at < 2 else [10 + at])] for at in range(5)]
    lists += [[0, 1, 2, *(third if at < 2 else [20 + at])] for at in range(5)]
    lists += [[*third, 30 + at] for at in range(5)]
    rankings = ranked([*lists, *([100, 101, 102, 110 + at] for at in range(5))])
    pieces = np.repeat(np.arange(4, dtype=np.int32), 5)
    assert joined(rankings, pieces, np.ones(20, np.float32)).tolist() == [0] * 15 + [1] * 5
