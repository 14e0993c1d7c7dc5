"""The real adapters against the stand-in store: what one endpoint says, the others say too, in every country."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock_systems.appstore.settings import Settings
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.standins.appstore import FIRST_DAY, Catalogue, Fault, Limit, Manners, make_store
from tests.systems.appstore.conftest import QUIET
from tests.systems.appstore.store_hosts import Host, opened

CATALOGUE = Catalogue(apps=400, markets=4, seed=1)


def standing_in(manners: Manners = QUIET) -> Host:
    return Host(stands_in=make_store(CATALOGUE, FIRST_DAY.timestamp, manners))


@pytest.fixture(autouse=True)
def kept_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No database is needed, only a folder for pages."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("country", ["us", "de", "fr", "jp", "il"])
async def test_every_countrys_pages_tell_what_the_catalogue_holds(
    country: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(standing_in(), Settings(country=country)) as store:
        sold = [index for index in range(60) if CATALOGUE.sold(index, 0, country)]
        bought = 0
        for app in map(CATALOGUE.app, sold):
            page = await store.page(app.track_id)
            assert [purchase.name for purchase in page.purchases] == [name for name, _ in app.purchases]
            assert [purchase.amount for purchase in page.purchases] == [amount for _, amount in app.purchases]
            assert (page.title, page.subtitle, page.price) == (cleaned(app.title), app.subtitle, app.price)
            counts = app.histogram(0, country)
            assert page.ratings is None if not any(counts) else page.ratings.histogram == tuple(reversed(counts))
            assert len(page.screenshots) == app.screenshots
            assert page.content_rating == app.age
            assert {other.track_id for other in page.more_by_developer} <= {
                CATALOGUE.track_id(index) for index in CATALOGUE.portfolio(app.developer)
            }
            assert app.track_id not in {other.track_id for other in page.similar}
            bought += bool(page.purchases)
        assert bought > 10
        assert not store.skipped


async def test_a_page_of_its_full_weight_is_read_like_a_light_one() -> None:
    track_id = CATALOGUE.track_id(3)
    async with opened(standing_in()) as store:
        light = await store.page(track_id)
    heavy = Manners(limits={}, latency_seconds={}, faults=(), whole_pages=True)
    async with opened(standing_in(heavy)) as store:
        assert await store.page(track_id, refresh=True) == light


@pytest.mark.parametrize("kind", ["truncated", "wrong_id"])
async def test_a_damaged_page_cannot_be_read_and_the_next_one_can(kind: str) -> None:
    fault = Fault(kind, "page", requests=(1, 1))  # type: ignore[arg-type]
    track_id = CATALOGUE.track_id(3)
    async with opened(standing_in(Manners(limits={}, latency_seconds={}, faults=(fault,)))) as store:
        with pytest.raises(ps.Unparsable):
            await store.page(track_id)
        assert (await store.page(track_id)).track_id == track_id


async def test_a_page_with_a_list_for_a_root_is_read_as_well() -> None:
    fault = Fault("list_root", "page")
    async with opened(standing_in(Manners(limits={}, latency_seconds={}, faults=(fault,)))) as store:
        assert (await store.page(CATALOGUE.track_id(3))).title == CATALOGUE.app(3).title


@pytest.mark.parametrize("endpoint", ["search", "lookup", "chart"])
async def test_half_an_answer_is_none(endpoint: str) -> None:
    fault = Fault("truncated", endpoint)  # type: ignore[arg-type]
    async with opened(standing_in(Manners(limits={}, latency_seconds={}, faults=(fault,)))) as store:
        calls = {
            "search": lambda: store.search("tracker"),
            "lookup": lambda: store.lookup(CATALOGUE.track_id(3)),
            "chart": lambda: store.chart("topfreeapplications", 6014),
        }
        with pytest.raises(ps.Unparsable):
            await calls[endpoint]()


async def test_a_genre_that_the_store_does_not_know_has_no_chart() -> None:
    async with opened(standing_in()) as store:
        assert len(await store.chart("topfreeapplications", None)) > 50
        with pytest.raises(ps.Unparsable, match="the store ignored it"):
            await store.chart("topfreeapplications", 9999)


async def test_an_empty_answer_is_a_value_where_the_store_means_it() -> None:
    async with opened(standing_in()) as store:
        assert await store.search("qqqqzzzz") == []
        assert await store.lookup(5) is None
        assert await store.chart("topfreeapplications", 6025) == []
        assert (await store.portfolio(5)).apps == ()
        with pytest.raises(ps.Gone):
            await store.page(5)
        assert await store.ratings(5) is None


@pytest.mark.parametrize("too_many", [0.0, 1.0])
async def test_too_fast_is_throttled_whichever_number_the_store_gives_it(too_many: float) -> None:
    manners = Manners(limits={"search": Limit(3)}, latency_seconds={}, faults=(), too_many_share=too_many)
    async with opened(standing_in(manners)) as store:
        for _ in range(3):
            assert await store.search("tracker")
        with pytest.raises(ps.Throttled) as error:
            await store.search("tracker")
        assert error.value.facts["status"] == (429 if too_many else 403)
