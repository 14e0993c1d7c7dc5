"""A market keeps its id while it is the same: it may grow, shrink, split and merge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock_systems.appstore.cluster.identity import Identities, Known, identities
from penstock_systems.appstore.cluster.relations import Relation, nearest, relations

pytestmark = pytest.mark.slow("postgres")

Markets = Mapping[int, Sequence[str]]


def words(first: int, last: int) -> list[str]:
    return [f"word {number}" for number in range(first, last)]


def found(before: Markets, now: Sequence[Sequence[str]], *, lineages: dict[int, int] | None = None) -> Identities:
    known = {id: Known((lineages or {}).get(id, id), len(keywords)) for id, keywords in before.items()}
    membership = [(id, keyword) for id, keywords in before.items() for keyword in keywords]
    return identities(known, membership, now, first_free=1 + max(before, default=0))


@pytest.mark.spec("B5-04")
def test_the_first_run_gives_ids_in_order() -> None:
    first = found({}, [words(0, 5), words(5, 10)])
    assert [(each.id, each.lineage_id, each.kind) for each in first.new] == [(1, 1, "new"), (2, 2, "new")]
    assert first.ended == []


@pytest.mark.spec("B5-04", "B8-T20")
def test_one_keyword_more_keeps_the_id_and_the_lineage() -> None:
    (same,) = found({7: words(0, 9)}, [words(0, 10)], lineages={7: 3}).new
    assert (same.id, same.lineage_id, same.kind, same.overlap) == (7, 3, "kept", 0.9)


def test_a_market_that_grows_fivefold_is_still_the_same() -> None:
    (grown,) = found({7: words(0, 10)}, [words(0, 50)]).new
    assert (grown.id, grown.kind) == (7, "kept")


def test_of_a_market_that_splits_the_largest_part_keeps_the_id_and_the_other_its_lineage() -> None:
    split = found({7: words(0, 10)}, [words(0, 3), words(3, 10)], lineages={7: 2})
    small, large = split.new
    assert (large.id, large.kind) == (7, "kept")
    assert (small.id, small.lineage_id, small.kind, small.parent) == (8, 2, "split", 7)


def test_what_took_only_a_little_from_a_market_is_no_part_of_it() -> None:
    _, other = found({7: words(0, 20)}, [words(2, 20), words(0, 2) + words(40, 50)]).new
    assert (other.id, other.lineage_id, other.kind) == (8, 8, "new")


def test_of_markets_that_merge_the_larger_goes_on_and_the_other_ends_in_it() -> None:
    merged = found({3: words(0, 4), 9: words(4, 10)}, [words(0, 10)])
    assert [each.id for each in merged.new] == [9]
    (ended,) = merged.ended
    assert (ended.id, ended.into, ended.overlap) == (3, 9, 0.4)


def test_a_market_that_vanishes_ends_nowhere() -> None:
    (ended,) = found({3: words(0, 4)}, []).ended
    assert (ended.id, ended.into) == (3, None)


def test_equal_halves_are_distinguished_by_their_order() -> None:
    halves = found({5: words(0, 10)}, [words(0, 5), words(5, 10)]).new
    assert [each.id for each in halves] == [5, 6]


@pytest.mark.spec("B5-04")
def test_a_run_that_was_cut_off_gives_the_same_ids_when_it_is_begun_anew() -> None:
    before: Markets = {1: words(0, 10), 2: words(10, 20), 3: words(20, 24)}
    now = [words(0, 4), words(4, 10), words(10, 24), words(30, 35)]
    whole = found(before, now)
    lineages = {each.id: each.lineage_id for each in whole.new}
    ids = list(lineages)
    written = dict(before)
    for id in sorted(ids, key=lambda id: (id in before, id)):  # new ones first, as they are saved
        written[id] = now[ids.index(id)]
        again = found(written, now, lineages=lineages)
        assert {each.id: each.lineage_id for each in again.new} == lineages
        assert [each.id for each in again.ended] == [each.id for each in whole.ended]


keyword_sets = st.lists(st.sets(st.integers(0, 60), min_size=1, max_size=20), max_size=8)


def disjoint(sets: list[set[int]]) -> list[list[str]]:
    seen: set[int] = set()
    parts = []
    for each in sets:
        parts.append([f"k{number}" for number in sorted(each - seen)])
        seen |= each
    return [part for part in parts if part]


@given(keyword_sets, keyword_sets)
def test_ids_are_unique_and_every_old_market_goes_on_or_ends(old: list[set[int]], new: list[set[int]]) -> None:
    before = dict(enumerate(disjoint(old), 1))
    now = disjoint(new)
    result = found(before, now)
    ids = [each.id for each in result.new]
    assert len(set(ids)) == len(ids) == len(now)
    assert {each.id for each in result.ended} == before.keys() - set(ids)
    assert all(each.into is None or each.into in ids for each in result.ended)
    assert found(before, now) == result


@given(keyword_sets)
def test_the_same_markets_keep_their_ids(sets: list[set[int]]) -> None:
    markets = disjoint(sets)
    before = dict(enumerate(markets, 1))
    assert [each.id for each in found(before, markets).new] == list(before)


@pytest.mark.spec("B8-T21")
def test_relations_tell_neighbours_and_where_markets_came_from_and_went() -> None:
    who = found({7: words(0, 10), 8: words(20, 23), 9: words(23, 30)}, [words(0, 3), words(3, 10), words(20, 30)])
    told = relations([(0, 1, 0.5)], who)
    assert told == [
        Relation(7, 10, "neighbour", 0.5),
        Relation(8, 9, "merge", 0.3),
        Relation(10, 7, "split", 0.3),
    ]


def test_each_market_keeps_its_five_nearest_and_those_that_count_it_among_theirs() -> None:
    """The nearer two numbers are, the nearer the markets; the last one is far from all."""
    ties = [(a, b, 1.0 / (b - a)) for a in range(9) for b in range(a + 1, 9)] + [(0, 9, 0.05), (1, 9, 0.04)]
    near = nearest(ties, [1.0] * 10)
    assert {(a, b) for a, b, _ in near if b == 9} == {(0, 9), (1, 9)}
    assert {b for a, b, _ in near if a == 0} >= {1, 2, 3, 4, 5}
    assert (0, 8) not in {(a, b) for a, b, _ in near}
    assert nearest([(0, 1, 0.0)], [1.0, 1.0]) == []
