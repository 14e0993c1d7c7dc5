"""What is enriched next: the order, the merging of the two lists, and that neither is ever sorted as a whole."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.contracts.store import PROBE
from penstock_systems.appstore import app as shared
from penstock_systems.appstore.enrich import picking
from penstock_systems.appstore.enrich.parts import Known
from penstock_systems.appstore.enrich.verdict import WISHED
from penstock_systems.appstore.settings import Settings
from tests.systems.appstore.conftest import Opened
from tests.systems.appstore.crawling import crawling, insert, insert_apps

PAST, LATER = "2025-11-01 00:00:00", "2026-06-01 00:00:00"


def apps(*ids: int, priority: int = 0) -> list[Known]:
    return [Known(track_id, enrich_priority=priority) for track_id in ids]


def ids(merged: object) -> list[int]:
    return [each.track_id for each in merged]  # type: ignore[attr-defined]


@pytest.mark.spec("B3-02", "G2-22")
@pytest.mark.parametrize(
    "due_every, order",
    [
        (0, [1, 2, 3, 4, 5, 101, 102, 103]),
        (1, [101, 102, 103, 1, 2, 3, 4, 5]),
        (2, [1, 101, 2, 102, 3, 103, 4, 5]),
        (4, [1, 2, 3, 101, 4, 5, 102, 103]),
    ],
)
def test_never_enriched_ones_come_first_but_for_the_places_that_are_kept_for_those_due_again(
    due_every: int, order: list[int]
) -> None:
    assert ids(picking.merged(apps(1, 2, 3, 4, 5), apps(101, 102, 103), due_every=due_every)) == order
    assert ids(picking.merged([], apps(101, 102), due_every=due_every)) == [101, 102]
    assert ids(picking.merged(apps(1, 2), [], due_every=due_every)) == [1, 2]


def test_the_places_that_are_kept_are_a_setting() -> None:
    assert Settings.of({}).due_every == 4
    assert Settings.of({"appstore": {"due_every": 0}}).due_every == 0
    with pytest.raises(ps.BadConfig, match="due_every"):
        Settings.of({"appstore": {"due_every": -1}})


@pytest.mark.slow("postgres")
def test_a_requested_app_comes_before_all_others() -> None:
    fresh = [*apps(1, priority=WISHED + 5), *apps(2, 3)]
    due = [*apps(101, priority=WISHED), *apps(102)]
    assert ids(picking.merged(fresh, due, due_every=4)) == [101, 1, 2, 3, 102]


@pytest.mark.spec("B3-02", "A6-07")
async def test_each_list_has_its_order_and_only_what_waits(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert_apps(
            it,
            {"track_id": 1, "rating_count": 5, "enrich_priority": 0},
            {"track_id": 2, "rating_count": 9, "enrich_priority": 0},
            {"track_id": 3, "rating_count": 1, "enrich_priority": 10},
            {"track_id": 4, "rating_count": 9, "enrich_priority": 0},
        )
        late = {"enriched_at": PAST, "enrichment_source": "scraper"}
        await insert_apps(
            it,
            {"track_id": 11, **late, "next_enrich_at": "2025-12-02 00:00:00"},
            {"track_id": 12, **late, "next_enrich_at": "2025-12-01 00:00:00"},
            {"track_id": 13, **late, "next_enrich_at": LATER},
            {"track_id": 14, "enriched_at": None, "enrichment_source": None, "next_enrich_at": "2025-12-03 00:00:00"},
        )
        assert ids(await picking.waiting(100)) == [3, 2, 4, 12, 1, 11, 14]
        assert ids(await picking.waiting(2)) == [3, 2]


async def test_a_developer_whose_apps_were_asked_for_is_known(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        await insert(it, "developers", {"developer_id": 9, "portfolio_at": PAST, "first_seen_at": PAST})
        await insert_apps(it, {"track_id": 1, "developer_id": 9}, {"track_id": 2, "developer_id": 10})
        assert [each.portfolio_at for each in await picking.waiting(9)] == [PAST, None]
        assert (await picking.known(1)).portfolio_at == PAST
        unknown = await picking.known(77)
        assert (unknown.track_id, unknown.enriched_at, unknown.portfolio_at, unknown.mentions) == (77, None, None, ())
        assert (unknown.enrich_attempts, unknown.enrich_priority) == (0, 0)


@pytest.mark.spec("B3-02", "G2-22", "A8-15")
async def test_the_plan_walks_along_an_index_and_sorts_nothing(pipeline: Opened) -> None:
    async with crawling(pipeline) as it:
        rows = [
            {"track_id": number, "rating_count": number % 7, "enriched_at": PAST, "next_enrich_at": LATER}
            for number in range(1, 3_000)
        ]
        fresh = [
            {**row, "track_id": 10_000 + number, "enriched_at": None, "next_enrich_at": None}
            for number, row in enumerate(rows)
        ]
        await insert_apps(it, *rows)
        await insert_apps(it, *fresh)
        dialect = await shared.db.dialect()
        for name, sql, given in (
            ("app_registry_fresh", picking.FRESH, {}),
            ("app_registry_due", picking.DUE, {"now": "2026-01-01 00:00:00"}),
        ):
            asked = f"explain query plan {sql}" if dialect == "sqlite" else f"{PROBE}explain (costs off) {sql}"
            plan = "\n".join(str(row[-1]) for row in await shared.db.rows(asked, {"most": 200, **given}))
            assert name in plan, plan
            assert "TEMP B-TREE" not in plan, plan
            assert "Sort" not in plan, plan
