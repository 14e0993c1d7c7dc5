"""Search, look-up, charts, reviews and the small answers, read from their true shapes with every oddity in them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock_systems.appstore.store import records
from penstock_systems.appstore.store.charts import chart_url, parse_chart
from penstock_systems.appstore.store.facts import Found, Ratings, Review
from penstock_systems.appstore.store.genres import parse_genres
from penstock_systems.appstore.store.hints import hints_url, parse_hints
from penstock_systems.appstore.store.lookup import lookup_url, parse_lookup, parse_portfolio
from penstock_systems.appstore.store.ratings import parse_ratings
from penstock_systems.appstore.store.reviews import parse_reviews
from penstock_systems.appstore.store.search import parse_search, search_url
from tests.systems.appstore.store_shapes import POCKET_LEDGER, shape

ITUNES = "https://itunes.apple.com"


@pytest.fixture(autouse=True)
def kept_on() -> None:
    """Nothing here is kept anywhere."""


# -- search and look-up -------------------------------------------------------------------------------------------------


def test_a_record_is_mapped_field_by_field() -> None:
    assert parse_lookup(shape("search.json")).facts[POCKET_LEDGER] == Found(
        track_id=POCKET_LEDGER,
        title="Pocket Ledger: Budget",
        bundle_id="com.example.pocketledger",
        developer="Example Labs",
        developer_id=900_001,
        developer_website="https://ledger.example",
        score=4.61,
        ratings=8_421,
        genre="Finance",
        genre_id=6015,
        price=0.0,
        formatted_price="Free",
        icon="https://is1-ssl.mzstatic.com/a/512x512bb.jpg",
        url="https://apps.apple.com/us/app/pocket-ledger/id1700000001?uo=4",
        description="Keeps your budget.\n\n• on your phone\n• and nowhere else",
        released="2021-05-04 07:00:00",
        version="3.4.1",
        version_released="2026-10-30 17:20:11",
        release_notes="Fixes.",
        content_rating="4+",
        languages=("EN", "DE"),
        screenshots=("https://is1-ssl.mzstatic.com/a/392x696bb.png",),
    )


def test_a_search_gives_apps_in_brief() -> None:
    whole = parse_lookup(shape("search.json")).facts[POCKET_LEDGER]
    brief = parse_search(shape("search.json")).facts[0]

    long = ("description", "release_notes", "languages", "screenshots")
    assert brief == msgspec.structs.replace(whole, rank=1, **dict.fromkeys(long))


def test_a_search_keeps_apps_in_their_order_and_leaves_out_what_cannot_be_read() -> None:
    apps, skipped = parse_search(shape("search.json"))

    # The film has no rank; the two records that cannot be read keep theirs.
    assert [(app.track_id - POCKET_LEDGER, app.rank) for app in apps] == [(0, 1), (1, 2), (2, 4), (3, 6)]
    assert skipped == 2
    mixed, odd, half = apps[1:]
    assert (mixed.title, mixed.price, mixed.ratings, mixed.genre_id) == ("יומן תקציב", 4.99, 12, 6015)
    assert (mixed.score, mixed.languages, mixed.developer_website) == (None, None, None)
    assert (odd.title, odd.score, odd.ratings, odd.price, odd.released) == ('=HYPERLINK("http://x")', *[None] * 4)
    assert half.title == "Half a smile 🙂"
    assert [app.rank for app in parse_search(shape("search.json"), limit=2).facts] == [1, 2]


def test_an_app_that_comes_up_again_has_its_new_rank_and_says_what_it_says_now() -> None:
    one, other = ({"wrapperType": "software", "trackId": number, "trackName": f"App {number}"} for number in (17, 18))

    def found(*records: dict[str, Any]) -> list[tuple[int | None, int, str | None]]:
        return [
            (app.rank, app.track_id, app.title) for app in parse_search(json.dumps({"results": records}).encode())[0]
        ]

    for _ in range(2):
        assert found(one, other) == [(1, 17, "App 17"), (2, 18, "App 18")]
        assert found({"wrapperType": "artist"}, other, {"wrapperType": "software"}, one) == [
            (1, 18, "App 18"),
            (3, 17, "App 17"),
        ]
    assert found(one | {"trackName": "Renamed"}) == [(1, 17, "Renamed")]


def test_of_the_records_that_were_read_some_megabytes_are_kept_and_no_more() -> None:
    def search(number: int, padding: int) -> None:
        record = {"wrapperType": "software", "trackId": number, "trackName": "App", "description": "x" * padding}
        assert len(parse_search(json.dumps({"results": [record]}).encode()).facts) == 1

    before = records._briefly.cache_info()
    search(1, records.RECORD_BYTES_KEPT)
    assert records._briefly.cache_info() == before  # a long one is read each time
    for number in range(1, records.RECORDS_KEPT + 10):
        search(number, 1)
    assert records._briefly.cache_info().currsize == records.RECORDS_KEPT


def test_no_hit_is_an_answer_and_no_list_is_none() -> None:
    assert parse_search(b'\n\n\n{"resultCount":0,"results":[]}') == ([], 0)
    assert parse_lookup(b'\xef\xbb\xbf{"resultCount":0,"results":[]}') == ({}, 0)
    for body in (
        b"",
        b"[]",
        b'{"errorMessage":"Invalid value(s) for key(s): [country]"}',
        b'{"results":null}',
        b"<html>",
    ):
        with pytest.raises(ps.Unparsable):
            parse_search(body)


def test_looked_up_apps_are_known_by_their_ids() -> None:
    apps, _ = parse_lookup(shape("search.json"))
    assert set(apps) == {POCKET_LEDGER + number for number in range(4)}
    assert all(app.track_id == track_id and app.rank is None for track_id, app in apps.items())


def test_a_developer_comes_first_and_apps_of_others_do_not_count() -> None:
    portfolio, skipped = parse_portfolio(shape("portfolio.json"), 900_001)
    assert (portfolio.name, skipped) == ("Example Labs", 0)
    assert [app.title for app in portfolio.apps] == ["Shared Ledger", "Pocket Ledger: Budget"]
    assert parse_portfolio(b'{"resultCount":0,"results":[]}', 5).facts.apps == ()


def test_the_addresses_are_those_of_the_store() -> None:
    where: dict[str, Any] = {"country": "us", "language": "en-US"}
    assert search_url(ITUNES, "budget & plan", limit=999, **where) == (
        f"{ITUNES}/search?term=budget+%26+plan&country=us&media=software&entity=software&limit=200&lang=en_us"
    )
    assert lookup_url(ITUNES, [1, 2], **where) == f"{ITUNES}/lookup?id=1,2&country=us&entity=software&lang=en_us"
    charts = f"{ITUNES}/us/rss/topfreeapplications/limit=200"
    assert (
        chart_url(ITUNES, "topfreeapplications", country="us", genre_id=6015, limit=200) == f"{charts}/genre=6015/json"
    )
    assert chart_url(ITUNES, "topfreeapplications", country="us", genre_id=36, limit=200) == f"{charts}/json"
    assert hints_url("https://search.itunes.apple.com", "bud get").endswith("clientApplication=Software&term=bud+get")


# -- charts -------------------------------------------------------------------------------------------------------------


def test_a_chart_entry_is_mapped_field_by_field() -> None:
    assert parse_chart(shape("chart.json")).facts[0] == Found(
        track_id=POCKET_LEDGER,
        title="Pocket Ledger: Budget",
        bundle_id="com.example.pocketledger",
        developer="Example Labs",
        developer_id=900_001,
        genre="Finance",
        genre_id=6015,
        price=0.0,
        formatted_price="Free",
        icon="https://is1-ssl.mzstatic.com/a/100x100bb.png",
        url="https://apps.apple.com/us/app/x/id1700000001?uo=2",
        description="long description",
        released="2021-05-04 07:00:00",
        rank=1,
    )


def test_a_chart_is_read_with_one_link_an_artist_without_attributes_and_entries_that_are_none() -> None:
    apps, skipped = parse_chart(shape("chart.json"), genre_id=6015)
    assert [(app.track_id - POCKET_LEDGER, app.rank) for app in apps] == [(0, 1), (1, 3), (2, 5)]
    assert skipped == 2
    assert (apps[1].developer, apps[1].developer_id, apps[1].price, apps[1].formatted_price) == (
        "Nobody Known",
        None,
        2.99,
        "$2.99",
    )
    assert apps[1].icon == "https://is1-ssl.mzstatic.com/b/53x53bb.png"
    assert (apps[2].developer, apps[2].developer_id, apps[2].url) == ("Odd", None, None)


def test_a_chart_may_have_no_entry_one_or_many() -> None:
    feed = json.loads(shape("chart.json"))
    one = feed["feed"]["entry"][0]
    for entry, found in ((None, 0), ([], 0), (one, 1), ([one], 1), ([one, one], 1)):
        feed["feed"]["entry"] = entry
        assert len(parse_chart(json.dumps(feed).encode()).facts) == found
    del feed["feed"]["entry"]
    assert parse_chart(json.dumps(feed).encode()) == ([], 0)
    with pytest.raises(ps.Unparsable):
        parse_chart(b"{}")


def test_a_feed_that_takes_the_limit_lightly_is_cut() -> None:
    assert len(parse_chart(shape("chart.json"), limit=2).facts) == 2


def test_the_chart_of_all_is_not_taken_for_the_chart_of_a_genre() -> None:
    with pytest.raises(ps.Unparsable, match="2 of 3 apps in the chart of genre 6007") as error:
        parse_chart(shape("chart.json"), genre_id=6007)
    assert error.value.facts["reason"] == "wrong_genre"
    assert len(parse_chart(shape("chart.json"), genre_id=36).facts) == 3


def test_a_kind_of_game_has_a_chart_of_games() -> None:
    games = shape("chart.json").replace(b'"im:id":"6015"', b'"im:id":"6014"')
    assert len(parse_chart(games, genre_id=7012).facts) == 3
    with pytest.raises(ps.Unparsable):
        parse_chart(shape("chart.json"), genre_id=7012)


# -- reviews ------------------------------------------------------------------------------------------------------------

SYNC_LOST = Review(
    review_id="14500000001",
    rating=2,
    title="Sync lost my data",
    body="All of it.\nTwice.",
    author="quietfox",
    version="3.4.1",
    updated="2026-11-10 14:12:03",
)


def test_both_forms_of_the_feed_say_the_same() -> None:
    assert parse_reviews(shape("reviews.json"), "json").facts[0] == SYNC_LOST
    assert parse_reviews(shape("reviews.xml"), "xml") == ((SYNC_LOST,), 1)


def test_an_edited_review_is_kept_once_as_it_was_edited_last() -> None:
    reviews, skipped = parse_reviews(shape("reviews.json"), "json")
    assert [(review.review_id, review.title, review.rating) for review in reviews[1:]] == [
        ("14500000002", "Second thought", 1)
    ]
    assert skipped == 2


def test_the_entry_about_the_app_itself_is_no_review() -> None:
    only = {"feed": {"entry": json.loads(shape("reviews.json"))["feed"]["entry"][0]}}
    assert parse_reviews(json.dumps(only).encode(), "json") == ((), 0)
    assert parse_reviews(b'{"feed":{}}', "json") == ((), 0)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Service Unavailable</body></html>",
        b'<!DOCTYPE x [<!ENTITY a "b">]><feed xmlns="http://www.w3.org/2005/Atom">&a;</feed>',
        '<?xml version="1.0" encoding="utf-16"?><feed/>'.encode("utf-16"),
        b'<?xml version="1.0" encoding="nonsense"?><feed/>',
        b"<feed>",
    ],
)
def test_what_is_no_feed_cannot_be_read(body: bytes) -> None:
    for form in ("json", "xml"):
        with pytest.raises(ps.Unparsable):
            parse_reviews(body, form)


# -- the small ones -----------------------------------------------------------------------------------------------------


def test_ratings_are_one_star_first_whatever_stands_between_thousands() -> None:
    assert parse_ratings(shape("ratings.html")) == Ratings(3_624, (100, 74, 150, 400, 2_900))


def test_no_bars_are_no_histogram() -> None:
    assert parse_ratings(b"") is None
    assert parse_ratings(b"\n  \n") is None
    assert parse_ratings(b'<div class="rating-count">0 Ratings</div>') == Ratings(0, (0, 0, 0, 0, 0))
    four_bars = shape("ratings.html").replace(b'<span class="total">400</span>', b"")
    assert parse_ratings(four_bars) is None
    with pytest.raises(ps.Unparsable):
        parse_ratings(b"<html><body><h1>Try again later</h1></body></html>")


def test_hints_come_in_their_order_each_once() -> None:
    assert parse_hints(shape("hints.xml")) == (["budget planner", "budget app", "תקציב"], 1)
    assert parse_hints(b'<plist version="1.0"><dict/></plist>') == ([], 0)
    for body in (b"", b"<html/>", b"{}", b'<!DOCTYPE p [<!ENTITY a "x">]><plist>&a;</plist>'):
        with pytest.raises(ps.Unparsable):
            parse_hints(body)


def test_the_genre_tree_is_laid_flat_without_its_root() -> None:
    names, skipped = parse_genres(shape("genres.json"))
    assert names == {6015: "Finance", 6014: "Games", 7012: "Puzzle", 6023: "Food & Drink"}
    assert skipped == 1
    for body in (b"{}", b'{"36":[]}', b"[]"):
        with pytest.raises(ps.Unparsable):
            parse_genres(body)
