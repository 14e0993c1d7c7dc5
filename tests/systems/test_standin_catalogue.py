"""The catalogue of the stand-in App Store: the same seed gives the same apps, as unevenly spread as real ones."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import islice

import pytest

from penstock.testing import virtual
from penstock_systems.standins.appstore import FIRST_DAY, Catalogue, make_store, store_of
from penstock_systems.standins.appstore.scale import every_app, every_ranking, whole_store
from penstock_systems.standins.appstore.titles import OLD_BEFORE
from tests.systems.standin_visits import QUIET, page_path, sold, visiting

FREE_GAMES = "/us/rss/topfreeapplications/limit=100/genre=6014/json"


@virtual
async def test_the_same_seed_gives_the_same_answers() -> None:
    paths = [FREE_GAMES, "/search?term=tracker&media=software", "/us/rss/toppaidapplications/limit=50/xml"]

    async def answers(seed: int) -> list[bytes]:
        catalogue = Catalogue(seed=seed)
        popular = next(catalogue.popular(36))
        reviews = f"/us/rss/customerreviews/id={catalogue.track_id(popular)}/json"
        async with visiting(QUIET, catalogue) as client:
            return [(await client.get(path)).content for path in [*paths, page_path(catalogue, 7), reviews]]

    assert await answers(1) == await answers(1)
    assert all(ours != other for ours, other in zip(await answers(1), await answers(2), strict=True))


def test_every_id_leads_back_to_its_app() -> None:
    catalogue = Catalogue(apps=500)
    for index in range(500):
        market, position = catalogue.place(index)
        assert catalogue.at(market, position) == index
        assert catalogue.index(catalogue.track_id(index)) == index
        assert index in catalogue.portfolio(catalogue.developer(index))
    assert sum(market.apps for market in catalogue.fields) == 500
    assert catalogue.index(catalogue.track_id(499) + 1) is None


def test_apps_are_as_unevenly_spread_as_real_ones() -> None:
    catalogue = Catalogue(apps=10_000, markets=60)
    apps = [catalogue.described(index) for index in range(10_000)]
    counts = sorted((app.rating_count(0) for app in apps), reverse=True)

    assert 0.5 < counts.count(0) / len(counts) < 0.6
    assert sum(counts[:1_000]) > 0.89 * sum(counts)
    assert counts[0] > 500_000
    assert 0.9 < sum(app.price == 0 for app in apps) / len(apps) < 0.96
    assert 0.4 < sum(bool(app.purchases) for app in apps) / len(apps) < 0.5
    assert max(len(app.purchases) for app in apps) == 10
    assert 0.4 < sum(len(app.languages) == 1 for app in apps) / len(apps) < 0.6
    assert len({app.genres[0] for app in apps}) > 20
    assert 0.3 < sum(app.versions(0) == 1 for app in apps) / len(apps) < 0.55
    portfolios = Counter(app.developer for app in apps)
    assert 0.6 < sum(size == 1 for size in portfolios.values()) / len(portfolios) < 0.8


def test_stars_and_histograms_agree() -> None:
    catalogue = Catalogue()
    for app in map(catalogue.described, range(3_000)):
        histogram = app.histogram(9)
        assert sum(histogram) == app.rating_count(9)
        if sum(histogram) > 1_000:
            mean = sum(count * (5 - place) for place, count in enumerate(histogram)) / sum(histogram)
            assert abs(mean - app.stars) < 0.02


def test_titles_have_thirty_characters_unless_they_are_old_and_come_in_several_scripts() -> None:
    catalogue = Catalogue(apps=10_000)
    apps = [catalogue.described(index) for index in range(10_000)]

    long = [app for app in apps if len(app.title) > 30]
    assert 30 < len(long) < 500
    assert all(app.released < OLD_BEFORE for app in long)
    assert all(len(app.subtitle or "") <= 30 for app in apps)
    scripts = {letter for app in apps for letter in app.title if ord(letter) > 0x24F}
    assert {"т", "יומן"[0], "記", "기", "ड"} <= scripts


def test_some_titles_mean_harm() -> None:
    catalogue = Catalogue(apps=10_000)
    titles = [catalogue.described(index).title for index in range(10_000)]

    for sign in ("=HYPERLINK(", "<script>", "\u202e", "\x00", "\x1b", "\n", '"', "' or '1'='1", "👩‍👩‍👧‍👦", "\ufeff"):
        assert any(sign in title for title in titles), repr(sign)
    spiteful = sum(any(not letter.isprintable() or letter in "<=\"'" for letter in title) for title in titles)
    assert 20 < spiteful < 300


def test_apps_come_and_go_in_the_course_of_a_year() -> None:
    catalogue = Catalogue()
    then, later = ({i for i in range(3_000) if catalogue.sold(i, day, "us")} for day in (0, 365))

    assert 20 < len(later - then) < 150
    assert 50 < len(then - later) < 400
    assert len(then) > 2_700


# -- at full scale -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_million_apps_cost_neither_time_nor_memory(note: Callable[[str], None]) -> None:
    tracemalloc.start()
    started = time.perf_counter()
    try:
        store = store_of(make_store(whole_store(), FIRST_DAY.timestamp, QUIET))
        made = time.perf_counter() - started
        for kind in ("free", "paid", "grossing"):
            assert len(store.charts.ranked(kind, 6015, 0, "us")) > 150
        assert len(store.searches.ranked("budget tracker", 0, "us")) == 200
        assert sum(1 for _ in islice(every_app(store.catalogue), 1_000)) == 1_000
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    answered = time.perf_counter() - started
    assert peak_bytes < 50_000_000
    figures = (
        f"made in {made:.3f} s, charts, a search and a thousand apps by {answered:.2f} s, {peak_bytes / 1e6:.1f} MB"
    )
    note(f"stand-in App Store of 1.1 million apps, with every allocation traced: {figures}")


@virtual
async def test_what_a_bench_is_filled_with_is_what_the_store_would_answer() -> None:
    catalogue = Catalogue(apps=300, markets=5)
    known = dict(every_app(catalogue))
    async with visiting(QUIET, catalogue) as client:
        ids = [catalogue.track_id(index) for index in sold(catalogue)[:150]]
        answer = await client.get("/lookup?id=" + ",".join(map(str, ids)))

    assert len(known) == 300
    for record in answer.json()["results"]:
        fields = known[record["trackId"]]
        assert fields["track_name"] == record["trackName"]
        assert fields["rating_count"] == record["userRatingCount"]
        assert fields["average_rating"] == record.get("averageUserRating", 0.0)
        assert fields["primary_genre"] == record["primaryGenreName"]
        assert fields["developer_id"] == record["artistId"]
        assert fields["release_date"] == record["releaseDate"]


def test_rankings_come_in_the_numbers_that_a_week_brings() -> None:
    catalogue = Catalogue(apps=20_000, markets=40)
    ranked = dict(every_ranking(catalogue, keywords=5_000, ranked=77_500))

    assert len(ranked) == 5_000
    assert 75_000 < sum(map(len, ranked.values())) <= 77_500
    assert all(len(set(ids)) == len(ids) and None not in map(catalogue.index, ids) for ids in ranked.values())
    pure = [_purity(catalogue, ids) for ids in ranked.values()]
    assert 0.7 < sum(pure) / len(pure) < 0.9


def _purity(catalogue: Catalogue, ids: list[int]) -> float:
    places = Counter(catalogue.place(catalogue.index(track_id) or 0)[0].number for track_id in ids)
    return places.most_common(1)[0][1] / len(ids)
