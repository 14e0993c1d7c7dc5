"""Planted markets are found again: through noise, over genres, whatever their size, and better than by simpler ways."""

from __future__ import annotations

import pytest

from bench.clusters_truth import crawl, judged, v_measure
from penstock_systems.appstore.cluster.markets import computed

pytestmark = pytest.mark.alike

BAR = 0.85


@pytest.mark.spec("B5-01", "G2-44")
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_planted_markets_are_found_again(seed: int) -> None:
    found = judged(seed, apps=3_000, markets=20, keywords=1_500)
    assert found.ours >= BAR
    assert found.ours > max(found.overlap, found.genre) + 0.05
    assert found.placed >= 0.7
    assert 15 <= found.found <= 60  # twenty were planted, and there are genres that hold together by themselves


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
