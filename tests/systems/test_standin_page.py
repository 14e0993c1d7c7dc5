"""The product pages of the stand-in App Store: Apple's shelves, in several languages and forms, whole and spoilt."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import pytest

from penstock.testing import virtual
from penstock_systems.standins.appstore import Catalogue, Fault
from tests.systems.standin_visits import (
    FRONT,
    QUIET,
    differences,
    embedded_in,
    faulty,
    page_path,
    read_page,
    rich,
    shelves_of,
    sold,
    visiting,
)

INTENT = (
    """{"$kind":"ProductPageIntent","storefront":"us","language":"en-US","isDefaultLanguage":true,"id":"1700000001"}"""
)
LOCKUP = """{"$kind":"Lockup","adamId":"..","bundleId":"..","title":"..","subtitle":"..","developerTagline":"..",
"rating":4.6,"icon":{"template":"https://.../{w}x{h}{c}.{f}","width":1,"height":1},
"offerDisplayProperties":{"$kind":"OfferDisplayProperties","isFree":true,"titles":{"standard":"Get"}}}"""
SHELVES = """{"productRatings":{"items":[{"$kind":"Ratings","productId":"1","context":"productPage","ratingAverage":4.6,
"totalNumberOfRatings":8421,"ratingCounts":[5,4,3,2,1]}]},
"information":{"items":[{"title":"Seller","items":[{"text":"Example Labs LLC"}]}]},
"similarItems":{"items":[{"$kind":"Lockup","adamId":"1","bundleId":"..","title":"..","developerName":"..","rating":4.6}]},
"moreByDeveloper":{"items":[{"$kind":"Lockup","adamId":"1"}]},
"mostRecentVersion":{"items":[{"$kind":"TitledParagraph","text":"..","primarySubtitle":"Version 3.4.1",
"secondarySubtitle":"2026-10-30T.."}],"seeAllAction":{"pageData":{"shelves":[{"items":[{"$kind":"TitledParagraph"}]}]}}},
"description":{"items":[{"$kind":"ProductDescription","paragraph":{"text":".."}}]},
"privacyTypes":{"items":[{"$kind":"PrivacyType","identifier":"DATA_LINKED_TO_YOU","title":"..","detail":null,
"categories":[{"$kind":"PrivacyCategory","identifier":"CONTACT_INFO","title":".."}]}]},
"allProductReviews":{"items":[{"review":{"$kind":"Review","id":"145..","title":"..","contents":"..","rating":2,
"reviewerName":"..","date":".."}}]},
"informationRibbon":{"items":[{"type":"rating","longCaption":".."}]},
"product_media_phone_":{"items":[{"screenshot":{"template":"https://..."}}]},
"product_media_pad_":{"items":[{"screenshot":{"template":"https://..."}}]}}"""


@virtual
async def test_a_page_holds_the_shelves_of_apple() -> None:
    catalogue = Catalogue()
    known: dict[str, Any] = {}
    async with visiting(QUIET, catalogue) as client:
        for index in (i for i in range(400) if rich(catalogue, i)):
            embedded = read_page((await client.get(page_path(catalogue, index))).text)["data"][0]
            assert embedded["intent"] == json.loads(INTENT) | {"id": str(catalogue.track_id(index))}
            for name, shelf in embedded["data"]["shelfMapping"].items():
                shown = {name: json.loads(SHELVES)[name]}
                known[name] = min(known.get(name, ["?"] * 9), differences(shown, {name: shelf}), key=len)
            lockup = embedded["data"]["lockup"]
            if "subtitle" in lockup:
                assert differences(json.loads(LOCKUP), lockup) == []

    assert known == {name: [] for name in json.loads(SHELVES)}


@virtual
async def test_every_shelf_is_missing_somewhere() -> None:
    catalogue = Catalogue()
    names = set(json.loads(SHELVES))
    lacking: set[str] = set()
    async with visiting(QUIET, catalogue) as client:
        for index in sold(catalogue):
            if lacking == names:
                break
            lacking |= names - set(shelves_of((await client.get(page_path(catalogue, index))).text))

    assert lacking == names


@virtual
async def test_page_lookup_and_ratings_agree() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(3_000) if rich(catalogue, i) and catalogue.app(i).purchases)
    id = catalogue.track_id(index)

    async with visiting(QUIET, catalogue) as client:
        text = (await client.get(page_path(catalogue, index))).text
        record = (await client.get(f"/lookup?id={id}")).json()["results"][0]
        ratings = (await client.get(f"/us/customer-reviews/id{id}?displayable-kind=11", headers=FRONT)).text
        unheaded = (await client.get(f"/us/customer-reviews/id{id}?displayable-kind=11")).text
        unknown = await client.get("/us/customer-reviews/id17?displayable-kind=11", headers=FRONT)

    shelves = shelves_of(text)
    rated = shelves["productRatings"]["items"][0]
    stars = sum(count * star for count, star in zip(rated["ratingCounts"], (5, 4, 3, 2, 1), strict=True))
    assert sum(rated["ratingCounts"]) == rated["totalNumberOfRatings"] == record["userRatingCount"]
    assert stars / rated["totalNumberOfRatings"] == pytest.approx(record["averageUserRating"], abs=1e-4)
    assert [int(found.replace(",", "")) for found in re.findall(r'class="total">([\d,]+)<', ratings)] == rated[
        "ratingCounts"
    ]
    assert f"{record['userRatingCount']:,} Ratings" in ratings
    assert unheaded == ""
    assert (unknown.status_code, unknown.text) == (200, "")
    bought = next(row for row in shelves["information"]["items"] if row["title"] == "In-App Purchases")
    assert len(bought["items"][0]["textPairs"]) == text.count("<li><span>") == len(catalogue.app(index).purchases)
    linked = re.search(r'<script type="application/ld\+json">(.*?)</script>', text, re.DOTALL)
    assert linked is not None
    data = json.loads(linked[1])
    assert (data["@type"], data["name"]) == ("SoftwareApplication", record["trackName"])
    assert data["aggregateRating"]["reviewCount"] == record["userRatingCount"]


@virtual
async def test_an_app_without_ratings_shows_no_bars() -> None:
    catalogue = Catalogue()
    index = next(i for i in sold(catalogue) if not catalogue.app(i).rating_count(0))
    async with visiting(QUIET, catalogue) as client:
        text = (await client.get(f"/us/customer-reviews/id{catalogue.track_id(index)}", headers=FRONT)).text

    assert "0 Ratings" in text
    assert "total" not in text


@virtual
async def test_an_address_without_the_name_leads_to_the_one_with_it() -> None:
    catalogue = Catalogue()
    there = sold(catalogue)
    strange = [i for i in there if not catalogue.app(i).title.isascii() or not catalogue.app(i).title.isprintable()]
    async with visiting(QUIET, catalogue) as client:
        for index in [there[0], *strange[:20]]:
            short = await client.get(f"/us/app/id{catalogue.track_id(index)}?l=en-US")
            page = await client.get(short.headers["location"])
            assert short.status_code == 301
            assert short.headers["location"].endswith(f"/id{catalogue.track_id(index)}?l=en-US")
            assert page.status_code == 200
            assert page.headers["content-type"] == "text/html; charset=utf-8"
            assert read_page(page.text)["data"][0]["data"]["title"] == catalogue.app(index).title


@virtual
async def test_apps_vanish_and_some_are_not_sold_abroad() -> None:
    catalogue = Catalogue()
    leaving = next(i for i in range(3_000) if catalogue.app(i).released <= 0 < catalogue.app(i).gone < 60)
    homely = next(i for i in range(3_000) if catalogue.sold(i, 0, "us") and not catalogue.sold(i, 0, "de"))

    async with visiting(QUIET, catalogue) as client:
        path = page_path(catalogue, leaving)
        first = (await client.get(path)).status_code
        await asyncio.sleep(catalogue.app(leaving).gone * 86_400)
        gone = [(await client.get(one)).status_code for one in (path, f"/us/app/id{catalogue.track_id(leaving)}")]
        looked_up = (await client.get(f"/lookup?id={catalogue.track_id(leaving)}")).json()["resultCount"]
        abroad = (await client.get(page_path(catalogue, homely, "de"))).status_code
        nowhere = (await client.get(page_path(catalogue, homely, "zz"))).status_code

    assert (first, gone, looked_up, abroad, nowhere) == (200, [404, 404], 0, 404, 404)


@virtual
async def test_labels_are_in_the_language_of_the_store_or_the_one_asked_for() -> None:
    catalogue = Catalogue()
    index = next(i for i in sold(catalogue, "de") if rich(catalogue, i) and catalogue.app(i).purchases)

    async def titles(path: str) -> set[str]:
        shelves = shelves_of((await client.get(path)).text)
        return {row["title"] for row in shelves["information"]["items"]}

    async with visiting(QUIET, catalogue) as client:
        german = await titles(page_path(catalogue, index, "de"))
        english = await titles(page_path(catalogue, index, "de") + "?l=en-US")
        odd = await titles(page_path(catalogue, index) + '?l="><script>')

    assert {"Anbieter", "In‑App-Käufe", "Größe"} <= german
    assert {"Seller", "In-App Purchases", "Size"} <= english
    assert "Seller" in odd


@virtual
async def test_whole_pages_weigh_as_much_as_real_ones() -> None:
    catalogue = Catalogue()
    async with visiting(faulty(whole_pages=True), catalogue) as client:
        pages = [await client.get(page_path(catalogue, i)) for i in range(20) if catalogue.sold(i, 0, "us")]
    async with visiting(QUIET, catalogue) as client:
        small = [await client.get(page_path(catalogue, i)) for i in range(20) if catalogue.sold(i, 0, "us")]

    assert all(400_000 <= len(page.content) <= 850_000 for page in pages)
    assert [read_page(page.text) for page in pages] == [read_page(page.text) for page in small]


# -- spoilt pages and former forms -----------------------------------------------------------------------------------------


@virtual
async def test_pages_can_be_spoilt_in_every_way_that_was_seen() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(999) if rich(catalogue, i))
    path = page_path(catalogue, index)
    kinds: tuple[Any, ...] = (
        "wrong_id",
        "list_root",
        "truncated",
        "no_script",
        "no_shelves",
        "reversed",
        "shoebox",
        "empty",
        "blocked",
    )
    faults = [Fault(kind, "page", requests=(turn, turn)) for turn, kind in enumerate(kinds, start=1)]
    async with visiting(faulty(*faults), catalogue) as client:
        pages = {kind: (await client.get(path)).text for kind in kinds}
        clean = (await client.get(path)).text

    assert read_page(pages["wrong_id"])["data"][0]["intent"]["id"] != str(catalogue.track_id(index))
    assert isinstance(read_page(pages["list_root"]), list)
    with pytest.raises(json.JSONDecodeError):
        json.loads(embedded_in(pages["truncated"]))
    assert "serialized-server-data" not in pages["no_script"]
    assert "<dl>" in pages["no_script"]
    assert shelves_of(pages["no_shelves"]) == {}
    assert pages["empty"] == ""
    similar = {item["adamId"] for item in shelves_of(clean)["similarItems"]["items"]}
    assert similar <= set(re.findall(r'href="/us/app/id(\d+)"', pages["no_script"]))
    assert 'class="purpose-section"' in pages["no_script"]
    assert "Access Denied" in pages["blocked"]
    turned = shelves_of(pages["reversed"])["productRatings"]["items"][0]["ratingCounts"]
    assert turned == shelves_of(clean)["productRatings"]["items"][0]["ratingCounts"][::-1]
    (held,) = json.loads(embedded_in(pages["shoebox"], "shoebox-media-api-cache-apps")).values()
    former, shelves = json.loads(held)["d"][0], shelves_of(clean)
    rating_counts = shelves["productRatings"]["items"][0]["ratingCounts"]
    assert former["attributes"]["userRating"]["ratingCountList"] == rating_counts[::-1]
    also = [one["id"] for one in former["relationships"]["customers-also-bought-apps"]["data"]]
    assert also == [one["adamId"] for one in shelves["similarItems"]["items"]]


@virtual
async def test_old_clients_get_the_old_page_and_no_client_the_inner_interface() -> None:
    catalogue = Catalogue()
    index = next(i for i in range(999) if rich(catalogue, i))
    old = {"X-Apple-Store-Front": "143441,32"}
    id = str(catalogue.track_id(index))
    async with visiting(QUIET, catalogue) as client:
        text = (await client.get(f"/us/app/app/id{id}", headers=old)).text
        data = (await client.get(f"/us/app/app/id{id}?dataOnly=true", headers=old)).json()
        shelves = shelves_of((await client.get(page_path(catalogue, index))).text)
        inner = await client.get(f"/v1/catalog/us/apps/{id}?platform=web&fields=privacyDetails")

    also = re.search(r'"customersAlsoBoughtApps":(\[[^\]]*\])', text)
    assert also is not None
    assert json.loads(also[1]) == [one["adamId"] for one in shelves["similarItems"]["items"]]
    shown = data["storePlatformData"]["product-dv"]["results"][id]
    assert shown["userRating"]["ratingCount"] == catalogue.app(index).rating_count(0)
    assert data["pageData"]["versionHistory"]
    assert inner.status_code == 401


@virtual
async def test_hostile_titles_do_no_harm_to_the_page_itself() -> None:
    catalogue = Catalogue(apps=10_000)
    strange = [i for i in sold(catalogue) if re.search('[<\x00"]', catalogue.app(i).title)]
    async with visiting(QUIET, catalogue) as client:
        for index in strange[:30]:
            text = (await client.get(page_path(catalogue, index))).text
            assert read_page(text)["data"][0]["data"]["title"] == catalogue.app(index).title
            assert "<script>" + catalogue.app(index).brand not in text.replace(embedded_in(text), "").split("<body>")[1]

    assert len(strange) >= 10
