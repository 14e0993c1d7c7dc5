"""Planted markets are found again: through noise, over genres, whatever their size, and better than by simpler ways."""

from __future__ import annotations

import pytest

from bench.clusters_niches import Listed, niches
from bench.clusters_niches import judged as judged_list
from bench.clusters_truth import Planted, agreement, crawl, judged, v_measure
from penstock_systems.appstore.cluster.markets import computed
from tests.extent import EVERYTHING, sampled

pytestmark = pytest.mark.slow("postgres")

BAR, TOO_EASY = 0.85, 0.80
NICHES, TRAPS = 0.85, 0.05


@pytest.mark.spec("B5-01", "G2-44")
@sampled("seed", [1, 2, 3, 4, 5, 11, 15] if EVERYTHING else [5, 11], every=2)
def test_planted_markets_are_found_again(seed: int) -> None:
    """All planted apps that were crawled count, also those that were put nowhere."""
    found = judged(crawl(seed, apps=3_000, markets=20, keywords=1_500))
    assert found.ours.whole >= BAR
    assert found.ours.inside >= BAR
    assert found.ours.placed >= 0.95
    assert max(found.overlap.whole, found.genre.whole) < TOO_EASY
    assert 15 <= found.found <= 60  # twenty were planted, and there are genres that hold together by themselves


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B5-03", "G2-18")
@sampled("seed", [8, *range(1, 8), *range(9, 21)], every=20)
def test_planted_niches_and_hardly_a_trap_are_among_the_first_twenty_markets(seed: int) -> None:
    found = niches(crawl(seed, apps=6_000, markets=40, keywords=4_000))
    assert found.niches == 20
    assert found.share >= NICHES
    assert found.trapped <= TRAPS
    assert found.v >= BAR
    assert [each.score for each in found.listed] == sorted((each.score for each in found.listed), reverse=True)


@pytest.mark.spec("B5-02")
def test_the_same_catalogue_gives_the_same_markets() -> None:
    known = crawl(1, apps=600, markets=6, keywords=300)
    first = computed(known.crawled)
    assert computed(known.crawled) == first
    assert len(first.markets) >= 4
    assert all(market.name and market.keywords and market.apps for market in first.markets)


def test_the_yardstick_knows_perfect_from_useless() -> None:
    assert v_measure([1, 1, 2, 2], ["a", "a", "b", "b"]) == pytest.approx(1.0)
    assert v_measure([1, 2, 1, 2], ["a", "a", "b", "b"]) == pytest.approx(0.0, abs=1e-12)
    assert v_measure([1, 1, 2, 2], ["a"] * 4) == 0.0
    assert 0.6 < v_measure([1, 1, 2, 2], ["a", "b", "c", "d"]) < 0.7


def test_what_is_in_no_market_counts_as_a_market_of_its_own() -> None:
    truth = {1: "a", 2: "a", 3: "b", 4: "b"}
    whole = agreement(truth, {1: 0, 2: 0, 3: 1, 4: 1})
    assert [whole.whole, whole.inside, whole.placed] == pytest.approx([1.0, 1.0, 1.0])
    part = agreement(truth, {1: 0, 2: 0, 3: 1, 4: -1})
    assert [part.inside, part.placed] == pytest.approx([1.0, 0.75])
    assert part.whole == v_measure(["a", "a", "b", "b"], [0, 0, 1, 2]) < 1.0
    assert agreement(truth, {1: 0, 2: 0, 3: 1}) == part


def test_a_niche_is_found_only_by_a_market_that_is_mostly_it_and_holds_half_of_it() -> None:
    truth = Planted({app: "sleep" if app < 10 else "money" for app in range(20)}, 2, ["sleep", "money"])

    def share(*markets: range) -> float:
        return judged_list([Listed("", 60.0, frozenset(each)) for each in markets], truth).share

    assert share(range(10), range(10, 20)) == 1.0
    assert share(range(2, 12)) == 0.5
    assert share(range(4), range(4, 6)) == 0.0  # pieces of it
    assert share(range(5, 18)) == 0.5  # more of it is money
    assert share(range(100, 200)) == 0.0
    assert share() == 0.0
