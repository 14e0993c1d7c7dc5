"""Which chart comes next: the roll over the tiers, the order within one, and when a chart is due again."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from penstock_systems.appstore.crawl.tiers import Category, choose, next_scan, order_of, within
from penstock_systems.appstore.settings import STALE_DAYS, TIER_WEIGHTS
from tests.systems.appstore.conftest import Opened

NOW = "2026-01-01 12:00:00"
pure = pytest.mark.only_on("sqlite")  # nothing of it is kept anywhere


def chart(id: int, priority: str = "high", **more: object) -> Category:
    return Category(id=id, collection="topfreeapplications", category="6015", priority=priority, **more)  # type: ignore[arg-type]


@pure
@pytest.mark.spec("B2-10")
@pytest.mark.parametrize(
    "roll, tiers",
    [
        (0, ["high", "medium", "low"]),
        (89.999, ["high", "medium", "low"]),
        (90, ["medium", "high", "low"]),
        (96.999, ["medium", "high", "low"]),
        (97, ["low", "high", "medium"]),
        (100, ["low", "high", "medium"]),
    ],
)
def test_a_roll_says_which_tier_comes_first(roll: float, tiers: list[str]) -> None:
    assert order_of(roll) == tiers


@pure
@pytest.mark.spec("B2-10", "B2-09", "G2-06")
def test_ten_thousand_rolls_come_close_to_the_weights() -> None:
    chance = Random(20260101)
    due = [chart(1, "high"), chart(2, "medium"), chart(3, "low")]

    chosen = Counter(choose(due, chance, 1)[0].priority for _ in range(10_000))

    assert TIER_WEIGHTS == {"high": 90, "medium": 7, "low": 3}
    for tier, weight in TIER_WEIGHTS.items():
        assert abs(chosen[tier] / 100 - weight) <= 1


@pure
@pytest.mark.spec("B2-10")
def test_the_first_tier_with_due_work_wins_and_three_charts_are_three_different_ones() -> None:
    for seed in range(50):
        assert [each.id for each in choose([chart(9, "low")], Random(seed), 3)] == [9]
        due = [chart(1, "medium"), chart(2, "low"), chart(3, "active"), chart(4, "high")]
        chosen = choose(due, Random(seed), 3)
        assert len({each.id for each in chosen}) == 3
        assert chosen == choose(due, Random(seed), 3)


@pure
@pytest.mark.spec("B2-11", "G2-45")
def test_active_counts_as_high_and_any_other_word_takes_a_chart_out() -> None:
    due = [chart(1, "paused"), chart(2, "active"), chart(3, ""), chart(4, "HIGH")]
    assert [each.id for each in choose(due, Random(1), 4)] == [2]


@pure
@pytest.mark.spec("B2-11", "G2-07")
def test_what_was_never_scanned_comes_first_then_the_order_that_was_given_then_the_oldest() -> None:
    old, older = "2025-12-02 00:00:00", "2025-12-01 00:00:00"
    charts = [
        chart(1, sort_order=1, scanned_at=old),
        chart(2, sort_order=2, scanned_at=older),
        chart(3, sort_order=2, scanned_at=old),
        chart(4, sort_order=93, scanned_at=None),
    ]
    assert [each.id for each in within(charts)] == [4, 1, 2, 3]


@pure
@pytest.mark.spec("B2-09", "B2-15", "G2-08")
def test_a_chart_is_due_again_after_its_tiers_period_or_sooner_if_it_was_empty_or_failed() -> None:
    assert STALE_DAYS == {"high": 7, "active": 7, "medium": 14, "low": 30}
    assert next_scan(chart(1, "high"), NOW) == "2026-01-08 12:00:00"
    assert next_scan(chart(1, "medium"), NOW) == "2026-01-15 12:00:00"
    assert next_scan(chart(1, "low"), NOW) == "2026-01-31 12:00:00"
    assert next_scan(chart(1, "low"), NOW, empty=True) == "2026-01-02 12:00:00"
    waits = [next_scan(chart(1, "high", attempts=attempts), NOW, failed=True) for attempts in (0, 1, 2, 7, 8, 60)]
    assert waits == [
        "2026-01-01 13:00:00",
        "2026-01-01 14:00:00",
        "2026-01-01 16:00:00",
        "2026-01-06 20:00:00",
        "2026-01-08 12:00:00",
        "2026-01-08 12:00:00",
    ]


@pytest.mark.spec("B2-13", "G2-09", "G2-45")
async def test_ninety_three_charts_are_there_from_the_start(pipeline: Opened) -> None:
    async with pipeline() as it:
        rows = await it.sql(
            "select collection, category, category_name, priority, sort_order, scanned_at, next_scan_at from category_scans"
        )
        assert len(rows) == 93
        assert Counter(row.collection for row in rows) == {
            "topfreeapplications": 31,
            "toppaidapplications": 31,
            "topgrossingapplications": 31,
        }
        names = {row.category: row.category_name for row in rows}
        assert len(names) == 31
        assert names["6015"] == "Finance"
        assert "6022" not in names  # Catalogs are no more
        assert sum(category.startswith("60") for category in names) == 26
        assert {row.priority for row in rows} == {"high", "medium", "low"}
        assert sorted(row.sort_order for row in rows) == list(range(1, 94))
        assert {(row.scanned_at, row.next_scan_at) for row in rows} == {(None, "")}
