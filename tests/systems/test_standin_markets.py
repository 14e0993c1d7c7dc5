"""The planted markets: hard enough that simple ways to find them fail, and with openings that are known."""

from __future__ import annotations

import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from functools import cache
from itertools import chain, pairwise
from pathlib import Path

import pytest

from penstock_systems.standins.appstore import Catalogue, market_of, write_truth
from penstock_systems.standins.appstore.charts import Charts
from penstock_systems.standins.appstore.genres import GENRES
from penstock_systems.standins.appstore.hints import hints
from penstock_systems.standins.appstore.search import Search
from penstock_systems.standins.appstore.shelves import similar
from penstock_systems.standins.appstore.words import words_of
from tests.extent import EVERYTHING
from tests.systems.standin_visits import sold

SEEDS = (1, 2, 3) if EVERYTHING else (2,)
RESULTS = 25  # of a search that are looked at


@pytest.mark.parametrize("seed", SEEDS)
def test_a_few_markets_are_huge_and_most_are_small(seed: int) -> None:
    sizes = sorted((market.apps for market in Catalogue(seed=seed).markets), reverse=True)

    assert len(sizes) == 20
    assert sizes[0] > 6 * sizes[10]
    assert sum(sizes[:4]) > 0.4 * sum(sizes)
    assert sizes[-1] > 20


@pytest.mark.parametrize("seed", SEEDS)
def test_neighbours_share_words_and_genres_hold_several_markets(seed: int) -> None:
    catalogue = Catalogue(seed=seed)
    words = Counter(word for market in catalogue.markets for word in market.keywords)
    genres = Counter(genre for market in catalogue.markets for genre in market.genres)

    assert sum(count > 1 for count in words.values()) >= 10
    assert all(len(market.genres) == 3 for market in catalogue.markets)
    assert sum(count > 1 for count in genres.values()) >= 8
    largest = max(catalogue.markets, key=lambda market: market.apps)
    shares = Counter(catalogue.genre(largest, position) for position in range(largest.apps))
    assert max(shares.values()) < 0.75 * largest.apps
    titles = [catalogue.app(catalogue.at(largest, position)).title for position in range(largest.apps)]
    next_door = {word for number in largest.near for word in catalogue.fields[number].keywords} - {*largest.keywords}
    assert sum(bool({*words_of(title)} & {*map(str, next_door)}) for title in titles) > 0.02 * largest.apps


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sixth_of_what_a_search_finds_is_noise(seed: int) -> None:
    catalogue = Catalogue(seed=seed)
    search = Search(catalogue)
    words = Counter(word for market in catalogue.markets for word in market.keywords)
    links = [
        catalogue.place(index)[0] is market
        for market in catalogue.markets
        for word in market.keywords
        if words[word] == 1
        for index in search.ranked(word, 0, "us", RESULTS)
    ]

    assert 0.15 < links.count(False) / len(links) < 0.25


@pytest.mark.parametrize("seed", SEEDS)
def test_neither_genres_nor_overlapping_results_give_the_markets_away(seed: int) -> None:
    catalogue = Catalogue(seed=seed)
    truth = _truth(catalogue)
    by_genre = {index: catalogue.app(index).genres[0] for index in truth}

    assert 0.4 < v_measure(truth, by_genre) < 0.8
    for share in (0.05, 0.2):
        assert v_measure(truth, _joined(_searched(seed, share))) < 0.8


@pytest.mark.parametrize("seed", SEEDS)
def test_yet_the_results_hold_what_is_needed(seed: int) -> None:
    """An app that is put where most of its searches lead is put right: the markets can be found."""
    catalogue, ranked = Catalogue(seed=seed), _searched(seed, 0.4)
    leading = {
        term: Counter(catalogue.place(i)[0].name for i in found).most_common(1) for term, found in ranked.items()
    }
    votes: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for term, found in ranked.items():
        for rank, index in enumerate(found):
            votes[index][leading[term][0][0]] += 10 // (rank + 1) + 1
    truth = {index: name for index, name in _truth(catalogue).items() if index in votes}

    assert len(truth) > 0.95 * len(_truth(catalogue))
    assert v_measure(truth, {index: votes[index].most_common(1)[0][0] for index in truth}) > 0.85


@pytest.mark.parametrize("seed", SEEDS)
def test_charts_reach_many_apps_and_searches_and_shelves_nearly_all(seed: int) -> None:
    catalogue = Catalogue(seed=seed)
    charts, there = Charts(catalogue), set(sold(catalogue))
    genres = [genre for genre, (_, part) in GENRES.items() if part] + [7001, 7004, 7012, 7013, 7015, 7019]
    listed = {
        i for genre in genres for kind in ("free", "paid", "grossing") for i in charts.ranked(kind, genre, 0, "us")
    }
    known = listed & there
    reached, waiting = set(known), sorted(known)
    while waiting:
        app = catalogue.app(waiting.pop())
        fresh = {*similar(catalogue, app, 0, "us"), *catalogue.portfolio(app.developer)} & there - reached
        reached |= fresh
        waiting += sorted(fresh)

    assert 0.25 < len(known) / len(there) < 0.6
    assert len(reached) > 0.98 * len(there)
    found = set(chain.from_iterable(_searched(seed, 0.2).values()))
    assert len(found & there) > 0.9 * len(there)


# -- openings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_half_of_the_markets_are_niches_and_an_eighth_is_each_kind_of_trap(seed: int) -> None:
    catalogue = Catalogue(apps=6_000, markets=40, seed=seed)
    kinds = Counter(market.kind for market in catalogue.markets)

    assert kinds == {"niche": 20, "giant": 5, "brand": 5, "dying": 5, "fad": 5}
    assert all(market.niche != market.trap for market in catalogue.markets)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_trap_differs_from_a_niche_in_what_makes_it_a_trap(seed: int) -> None:
    catalogue = Catalogue(apps=6_000, markets=40, seed=seed)
    for market in catalogue.markets:
        apps = [catalogue.app(catalogue.at(market, position)) for position in range(market.apps)]
        counts = sorted((app.rating_count(0) for app in apps), reverse=True)
        now = sum(app.ratings * app.growth for app in apps) / max(1, sum(app.ratings for app in apps))
        young = sum(-app.released <= 365 for app in apps) / len(apps)
        named = sum(market.franchise in app.title.casefold() for app in apps) / len(apps) if market.franchise else 0.0
        assert (counts[0] > 100_000) == (market.kind == "giant")
        assert (named > 0.6) == (market.kind == "brand")
        assert (young < 0.02) == (market.kind == "dying")
        assert (young > 0.5) == (market.kind == "fad")
        assert (now < 0.0003) == (market.kind in ("dying", "fad"))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_typed_often_is_completed_early_and_a_dying_market_hardly_ever(seed: int) -> None:
    catalogue = Catalogue(apps=6_000, markets=40, seed=seed)

    def letters(word: str) -> int:
        asked = range(2, len(word) + 1)
        return next((count for count in asked if word in hints(catalogue, word[:count])), len(word) + 9)

    usual = {
        kind: sorted(letters(word) for m in catalogue.markets if m.kind == kind for word in m.keywords[:8])
        for kind in ("niche", "brand", "dying")
    }
    middle = {kind: counts[len(counts) // 2] for kind, counts in usual.items()}
    assert middle["brand"] <= middle["niche"] + 1 <= 6 <= middle["dying"]


# -- a market left out, and the truth in a file ---------------------------------------------------------------------------


def test_a_market_that_is_left_out_is_nowhere_and_all_else_is_the_same() -> None:
    whole, lacking = Catalogue(), Catalogue(without=("sleep",))
    missing = {track_id for track_id, name in market_of(whole) if name == "sleep"}
    index = next(index for index in range(3_000) if whole.track_id(index) in missing)

    assert len(missing) > 50
    assert [market.name for market in lacking.markets] == [m.name for m in whole.markets if m.name != "sleep"]
    assert not any(lacking.sold(i, 0, "us") for i in range(3_000) if whole.track_id(i) in missing)
    assert lacking.index(whole.track_id(index)) is None
    assert all(lacking.app(i) == whole.app(i) for i in range(300) if whole.track_id(i) not in missing)
    for term in ("sleep", "calm", "tracker", "insomnia rain", "meditation coach"):
        left = [i for i in Search(whole).ranked(term, 0, "us") if whole.track_id(i) not in missing]
        found = Search(lacking).ranked(term, 0, "us")
        assert not {lacking.track_id(i) for i in found} & missing
        assert len({*found[:20]} & {*left[:60]}) >= min(15, len(found[:20]) - 5)
    for kind in ("free", "grossing"):
        chart = Charts(lacking).ranked(kind, 6013, 0, "us")
        assert not {lacking.track_id(i) for i in chart} & missing
        assert [i for i in Charts(whole).ranked(kind, 6013, 0, "us") if i in {*chart}][:20] == list(chart[:20])


def test_only_what_is_planted_can_be_left_out() -> None:
    with pytest.raises(ValueError, match="sleep, "):
        Catalogue(without=("sleeep",))


def test_the_truth_is_written_for_a_judge(tmp_path: Path) -> None:
    catalogue = Catalogue(seed=2)
    write_truth(catalogue, tmp_path / "truth.json")
    truth = json.loads((tmp_path / "truth.json").read_text("utf-8"))

    assert len(truth["market_of"]) == sum(market.apps for market in catalogue.markets)
    for track_id, name in list(truth["market_of"].items())[::97]:
        index = catalogue.index(int(track_id))
        assert index is not None
        assert catalogue.place(index)[0].name == name
    assert [market["niche"] for market in truth["markets"]] == [market.niche for market in catalogue.markets]
    assert {"name", "keywords", "climate", "niche", "trap", "apps", "genres", "near"} <= set(truth["markets"][0])
    write_truth(Catalogue(apps=9, markets=0), tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text("utf-8"))["market_of"] == {}


# -- what the tests need --------------------------------------------------------------------------------------------------


@cache
def _searched(seed: int, share: float) -> dict[str, list[int]]:
    """What is found for a share of the words, pairs of words and titles that the apps are called by."""
    catalogue = Catalogue(seed=seed)
    search, terms = Search(catalogue), set()
    for index in sold(catalogue):
        words = [word for word in words_of(catalogue.app(index).title) if len(word) > 2]
        terms |= {*(word for word in words if len(word) > 4), *map(" ".join, pairwise(words))}
        terms.add(" ".join(words[:4]))
    chosen = random.Random(seed).sample(sorted(terms), int(share * len(terms)))
    return {term: found for term in chosen if len(found := search.ranked(term, 0, "us", RESULTS)) > 1}


def _joined(ranked: Mapping[str, list[int]]) -> dict[int, Hashable]:
    """Keywords are joined if three in ten of their first ten apps are the same; an app goes with most of its keywords."""
    tops = [set(found[:10]) for found in ranked.values()]
    parents = list(range(len(tops)))

    def root(term: int) -> int:
        while parents[term] != term:
            parents[term] = parents[parents[term]]
            term = parents[term]
        return term

    holding: defaultdict[int, list[int]] = defaultdict(list)
    for term, top in enumerate(tops):
        shared = Counter(other for index in top for other in holding[index])
        for other, count in shared.items():
            if count >= 0.3 * (len(top) + len(tops[other]) - count):
                parents[root(term)] = root(other)
        for index in top:
            holding[index].append(term)
    return {index: Counter(map(root, terms)).most_common(1)[0][0] for index, terms in holding.items()}


def _truth(catalogue: Catalogue) -> dict[int, str]:
    places = {index: catalogue.place(index)[0] for index in sold(catalogue)}
    return {index: market.name for index, market in places.items() if market.planted}


def v_measure(truth: Mapping[int, Hashable], found: Mapping[int, Hashable]) -> float:
    """How well two partitions agree, from 0 to 1. Who was not found stands alone."""
    guess = {index: found.get(index, ("alone", index)) for index in truth}
    both: Counter[Hashable] = Counter((truth[index], guess[index]) for index in truth)
    real, told = _entropy(Counter(truth.values())), _entropy(Counter(guess.values()))
    joint = _entropy(both)
    common = real + told - joint
    homogeneity, completeness = common / real, common / told if told else 1.0
    return 2 * homogeneity * completeness / (homogeneity + completeness) if common > 0 else 0.0


def _entropy(counts: Counter[Hashable]) -> float:
    total = counts.total()
    return -sum(count / total * math.log(count / total) for count in counts.values())
