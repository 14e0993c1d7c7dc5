"""The product page in all its forms, shelf by shelf, and what is not the page it should be."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock_systems.appstore.store.facts import Found, PageFacts, Purchase, Ratings, Review, Version
from penstock_systems.appstore.store.page import page_key, page_url, parse_page
from tests.systems.appstore.store_shapes import POCKET_LEDGER, page, shape, shoebox_page


@pytest.fixture(autouse=True)
def kept_on() -> None:
    """Nothing here is kept anywhere."""


def changed(change: Callable[[Any], None]) -> bytes:
    """The page after something in its data was changed."""
    root = json.loads(shape("page.json").replace(b"1e999", b"7"))
    change(root["data"][0]["data"])
    return page(json.dumps(root).encode())


def read(body: bytes, track_id: int = POCKET_LEDGER) -> PageFacts:
    return parse_page(body, track_id).facts


def test_the_page_is_mapped_shelf_by_shelf() -> None:
    facts, skipped = parse_page(page(), POCKET_LEDGER)

    # A purchase and a lockup and a version without a name, a word, an endless number, no stars, no address.
    assert skipped == 7
    assert facts == PageFacts(
        track_id=POCKET_LEDGER,
        title="Pocket Ledger: Budget",
        subtitle="Money without worry",
        developer="Example Labs",
        bundle_id="com.example.pocketledger",
        description="Keeps your budget.\n• on your phone",
        ratings=Ratings(1_000, (30, 20, 50, 100, 800)),
        average=4.6,
        rating_count=1_000,
        purchases=(Purchase("Pro Yearly", "$29.99", 29.99), Purchase("Tip", "NT$ 3,290", 3_290)),
        similar=(
            Found(
                track_id=1_700_000_010,
                title="Rival Budget",
                bundle_id="com.example.rival",
                subtitle="Also money",
                developer="Rival Inc",
                score=4.1,
                price=0.0,
                formatted_price="Free",
                icon="https://is1-ssl.mzstatic.com/rival/512x512bb.jpg",
            ),
            Found(track_id=1_700_000_012),
        ),
        more_by_developer=(Found(track_id=1_700_000_009, title="Shared Ledger"),),
        versions=(Version("3.4.1", "2026-10-30 17:20:11", "Fixes."), Version("3.4.0 (12)", None, None)),
        screenshots=("https://is1-ssl.mzstatic.com/shot1/460x0w.webp",),
        reviews=(
            Review(
                review_id="14500000001",
                rating=2,
                title="Sync lost my data",
                body="All of it.",
                author="quietfox",
                updated="2026-11-10 14:12:03",
            ),
        ),
        content_rating="12+",
        languages=("English", "German", "Hebrew"),
        seller="Example Labs LLC",
        genre="Finance",
        icon="https://is1-ssl.mzstatic.com/icon/512x512bb.jpg",
        price=4.99,
        formatted_price="$4.99",
        information=(
            ("Seller", "Example Labs LLC"),
            ("Size", "83.2 MB"),
            ("Category", "Finance"),
            ("Languages", "English, German, Hebrew"),
            ("Compatibility", "Works on this iPhone"),
            ("Age Rating", "12+ Infrequent/Mild Horror"),
            ("In-App Purchases", "Yes"),
            ("Copyright", "© Example Labs LLC"),
        ),
        form="data",
    )


def test_every_shelf_may_be_missing_and_then_there_is_none_of_it() -> None:
    whole = read(changed(lambda data: None))
    shelves = list(json.loads(shape("page.json").replace(b"1e999", b"7"))["data"][0]["data"]["shelfMapping"])
    for shelf in shelves:
        for gone in (
            lambda d, s=shelf: d["shelfMapping"].pop(s),
            lambda d, s=shelf: d["shelfMapping"].update({s: None}),
        ):
            less = read(changed(gone))
            assert less.title == whole.title
            assert (less == whole) == (shelf in ("privacyTypes", "informationRibbon", "product_media_pad_"))
    bare = read(changed(lambda data: data.pop("shelfMapping")))
    assert bare == PageFacts(
        track_id=POCKET_LEDGER,
        title=whole.title,
        subtitle=whole.subtitle,
        developer=whole.developer,
        bundle_id=whole.bundle_id,
        icon=whole.icon,
        price=4.99,
        formatted_price="$4.99",
    )


@pytest.mark.parametrize(
    "tag",
    [
        'id="serialized-server-data" type="application/json"',
        "type='application/json' nonce='x' id='serialized-server-data'",
        "id=serialized-server-data",
    ],
)
def test_the_script_is_found_by_its_id_alone(tag: str) -> None:
    decoy = b'<meta content="serialized-server-data"><p>"serialized-server-data"</p><script>"serialized-server-data"</script>'
    assert read(decoy + page(tag=tag)).title == "Pocket Ledger: Budget"


def test_the_root_may_be_a_bare_list() -> None:
    root = json.loads(shape("page.json"))
    assert read(page(json.dumps(root["data"]).encode().replace(b"Infinity", b"1"))).purchases
    others = [{"intent": {"id": "5"}, "data": {}}, "nothing", *root["data"]]
    assert read(page(json.dumps({"data": others}).encode().replace(b"Infinity", b"1"))).track_id == POCKET_LEDGER


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html><body>Please wait while we check your browser</body></html>",
        page(b""),
        page(b"null"),
        page(b"{}"),
        page(b'{"data":[]}'),
        page(b'{"data":[{"intent":{"id":"1700000001"}}]}'),
        page(b'{"data":[{"data":{}}]}'),
        page(shape("page.json")[:3_000]),
        page(shape("page.json").replace(b'"id":"1700000001"}', b'"id":"1700000002"}')),
        shoebox_page(b'{"d":[{"id":"1700000002"}]}'),
        shoebox_page(b"{"),
        shape("markup.html").replace(b"id1700000001", b"id1700000002"),
        shape("markup.html").replace(b"SoftwareApplication", b"WebSite"),
    ],
)
def test_what_is_not_the_page_of_this_app_cannot_be_read(body: bytes) -> None:
    with pytest.raises(ps.Unparsable):
        parse_page(body, POCKET_LEDGER)


def test_the_order_of_the_histogram_is_what_the_average_says() -> None:
    def rated(counts: list[int], average: float | None) -> PageFacts:
        told = {"ratingAverage": average, "ratingCounts": counts, "totalNumberOfRatings": sum(counts)}
        return read(changed(lambda data: data["shelfMapping"].update(productRatings={"items": [told]})))

    falling, rising = [800, 100, 50, 20, 30], [30, 20, 50, 100, 800]
    for counts, average in ((falling, 4.6), (rising, 4.6), (falling, None), (falling, 3.0)):
        assert rated(counts, average).ratings == Ratings(1_000, (30, 20, 50, 100, 800))
    assert rated(rising, 1.4).ratings == Ratings(1_000, (800, 100, 50, 20, 30))
    assert rated([1, 2, 3], 4.6).ratings is None
    assert rated([-1, 2, 3, 4, 5], 4.6).ratings is None


def test_purchases_are_found_in_every_language_and_in_both_forms() -> None:
    def bought(change: Callable[[Any], None]) -> list[str]:
        def alter(data: Any) -> None:
            rows = data["shelfMapping"]["information"]["items"]
            change(next(row for row in rows if row["title"] == "In-App Purchases"))

        return [purchase.name for purchase in read(changed(alter)).purchases]

    def translated(row: Any) -> None:
        row["title"] = "רכישות מתוך האפליקציה"

    def older(row: Any) -> None:
        translated(row)
        row["items"][0]["textPairs"].append(["Trial", "ללא תשלום"])  # no money, so that only the structure tells
        del row["items_V3"]

    def newer(row: Any) -> None:
        translated(row)
        row["items"] = [{"text": "כן"}]
        row["items_V3"].pop()

    assert bought(lambda row: None) == ["Pro Yearly", "Tip"]
    assert bought(translated) == ["Pro Yearly", "Tip"]
    assert bought(older) == ["Old Yearly", "Trial"]
    assert bought(newer) == ["Pro Yearly", "Tip"]  # and not what is compatible


@pytest.mark.spec("G2-46")
def test_endless_shelves_are_cut() -> None:
    def endless(data: Any) -> None:
        shelves = data["shelfMapping"]
        for name in ("similarItems", "moreByDeveloper"):
            shelves[name]["items"] = [{"adamId": str(number)} for number in range(1, 5_000)]
        pairs = [[f"Pack {number}", "$1"] for number in range(5_000)]
        shelves["information"]["items"] = [{"title": "In-App Purchases", "items": [{"textPairs": pairs}]}] * 60
        version = {"primarySubtitle": "Version 1"}
        shelves["mostRecentVersion"]["seeAllAction"]["pageData"]["shelves"] = [
            {"items": [version | {"primarySubtitle": f"Version {number}"} for number in range(5_000)]}
        ]
        shelves["allProductReviews"]["items"] = [{"review": {"id": number, "rating": 1}} for number in range(5_000)]
        shot = "https://a.example/{}/{{w}}x{{h}}{{c}}.{{f}}"
        shelves["product_media_phone_"]["items"] = [
            {"screenshot": {"template": shot.format(number)}} for number in range(5_000)
        ]

    facts = read(changed(endless))
    assert (len(facts.similar), len(facts.more_by_developer), len(facts.purchases)) == (50, 50, 100)
    assert (len(facts.versions), len(facts.reviews), len(facts.screenshots), len(facts.information)) == (100, 50, 50, 0)


def test_the_older_form_says_the_same() -> None:
    facts, skipped = parse_page(shoebox_page(), POCKET_LEDGER)
    told = read(page())
    assert facts.form == "shoebox"
    assert skipped == 2
    for name in (
        "title",
        "subtitle",
        "developer",
        "bundle_id",
        "ratings",
        "average",
        "icon",
        "seller",
        "reviews",
        "genre",
    ):
        assert getattr(facts, name) == getattr(told, name), name
    assert facts.purchases == told.purchases[:1]
    assert facts.versions == told.versions[:1]
    assert [(app.track_id, app.title) for app in facts.similar + facts.more_by_developer] == [
        (1_700_000_010, "Rival Budget"),
        (1_700_000_009, "Shared Ledger"),
    ]


def test_a_page_without_data_is_read_from_what_a_reader_sees() -> None:
    facts, skipped = parse_page(shape("markup.html"), POCKET_LEDGER)
    assert skipped == 0
    assert facts == PageFacts(
        track_id=POCKET_LEDGER,
        title="Pocket Ledger: Budget",
        developer="Example Labs",
        description="Keeps your budget.",
        average=4.6,
        rating_count=1_000,
        purchases=(Purchase("Pro Yearly", "29,99 €", 29.99), Purchase("Tip & thanks", "1.299,00 €", 1_299)),
        similar=(Found(track_id=1_700_000_010),),
        versions=(
            Version("3.4.1", "2026-10-30 17:20:11", "Fixes."),
            Version("3.4.0", "2026-10-01 00:00:00", "Faster."),
        ),
        content_rating="4+",
        icon="https://is1-ssl.mzstatic.com/icon/1200x630wa.png",
        price=0.0,
        formatted_price="Free",
        information=(
            ("Anbieter", "Example Labs LLC"),
            ("Altersfreigabe", "4+"),
            ("In‑App-Käufe", "Ja Pro Yearly 29,99 € Tip & thanks 1.299,00 €"),
        ),
        form="markup",
    )


def test_the_address_and_the_key_of_a_page() -> None:
    url = page_url("https://apps.apple.com", 17, country="us", language="en-US")
    assert url == "https://apps.apple.com/us/app/id17?l=en-US"
    assert page_key(17) == "app/17/page.html"
