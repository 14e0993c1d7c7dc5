"""The reviews feed of the stand-in App Store: fifty a page, edited, taken away, and hidden from whoever it does not like."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import datetime
from typing import Any
from xml.etree import ElementTree

import httpx2
import pytest

from penstock.testing import virtual
from penstock_systems.standins.appstore import Catalogue, Fault
from tests.systems.standin_visits import QUIET, differences, faulty, page_path, shelves_of, visiting

ENTRY = """{"author":{"uri":{"label":".."},"name":{"label":"quietfox"},"label":""},"updated":{"label":".."},
"im:rating":{"label":"2"},"im:version":{"label":"3.4.1"},"id":{"label":"14500000001"},"title":{"label":".."},
"content":{"label":"Text","attributes":{"type":"text"}},"link":{"attributes":{"rel":"related","href":".."}},
"im:voteSum":{"label":"3"},"im:voteCount":{"label":"4"},
"im:contentType":{"attributes":{"term":"Application","label":"Application"}}}"""
BROWSER = "Mozilla/5.0 (Macintosh; Intel Mac OS X 14_0) AppleWebKit/605.1.15 Safari/605.1.15"
CATALOGUE = Catalogue()


def path(index: int, page: int = 1, form: str = "json", order: str = "mostRecent") -> str:
    return f"/us/rss/customerreviews/page={page}/id={CATALOGUE.track_id(index)}/sortby={order}/{form}"


def loved(*, odd: bool) -> int:
    """An app with more reviews than anybody sees. The feeds of those with even numbers begin with the app itself."""
    apps = (i for i in CATALOGUE.popular(36) if CATALOGUE.sold(i, 0, "us") and CATALOGUE.sold(i, 60, "us"))
    return next(i for i in apps if i % 2 == odd and CATALOGUE.app(i).rating_count(0) > 400_000)


async def entries(client: httpx2.AsyncClient, where: str) -> list[dict[str, Any]]:
    found = (await client.get(where)).json()["feed"].get("entry", [])
    return found if isinstance(found, list) else [found]


def reviews(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in found if "im:rating" in entry]


@virtual
async def test_ten_pages_of_fifty_the_newest_first() -> None:
    index = loved(odd=True)
    async with visiting(QUIET, CATALOGUE) as client:
        pages = [await entries(client, path(index, page)) for page in range(1, 11)]
        unnumbered = await entries(
            client, f"/us/rss/customerreviews/id={CATALOGUE.track_id(index)}/sortBy=mostRecent/json"
        )

    assert [len(page) for page in pages] == [50] * 10
    found = [entry for page in pages for entry in page]
    assert differences(json.loads(ENTRY), found[0]) == []
    moments = [datetime.fromisoformat(entry["updated"]["label"]) for entry in found]
    assert moments == sorted(moments, reverse=True)
    assert len({entry["id"]["label"] for entry in found}) == 500
    assert unnumbered == pages[0]
    stars = Counter(entry["im:rating"]["label"] for entry in found)
    assert set(stars) == set("12345")
    assert stars["1"] > 3 * stars["2"]


@virtual
async def test_pages_that_do_not_exist_are_refused_each_in_its_way() -> None:
    index = loved(odd=True)
    async with visiting(QUIET, CATALOGUE) as client:
        beyond, before = await client.get(path(index, 11)), await client.get(path(index, 0))
        unknown = await client.get("/us/rss/customerreviews/page=1/id=17/sortby=mostRecent/json")

    assert (beyond.status_code, beyond.headers["content-type"]) == (400, "text/plain; charset=utf-8")
    assert "page depth is limited to 10" in beyond.text
    assert before.status_code == 500
    with pytest.raises(json.JSONDecodeError):
        before.json()
    assert (unknown.status_code, "entry" in unknown.json()["feed"]) == (200, False)


@virtual
async def test_some_feeds_begin_with_the_app_itself() -> None:
    async with visiting(QUIET, CATALOGUE) as client:
        with_it = await entries(client, path(loved(odd=False)))
        second = await entries(client, path(loved(odd=False), 2))
        without = await entries(client, path(loved(odd=True)))

    assert "im:rating" not in with_it[0]
    assert with_it[0]["im:name"]["label"] == CATALOGUE.app(loved(odd=False)).title
    assert (len(with_it), len(second), len(without)) == (51, 50, 50)


@virtual
async def test_the_feed_as_atom_has_each_text_twice() -> None:
    index = loved(odd=True)
    spaces = {"atom": "http://www.w3.org/2005/Atom", "im": "http://itunes.apple.com/rss"}
    async with visiting(QUIET, CATALOGUE) as client:
        told = await entries(client, path(index))
        pages = [ElementTree.fromstring((await client.get(path(index, page, "xml"))).content) for page in range(1, 11)]

    found = pages[0].findall("atom:entry", spaces)
    assert [one.findtext("atom:id", None, spaces) for one in found] == [entry["id"]["label"] for entry in told]
    assert [one.findtext("im:rating", None, spaces) for one in found] == [entry["im:rating"]["label"] for entry in told]
    assert [text.attrib["type"] for text in found[0].findall("atom:content", spaces)] == ["text", "html"]


@virtual
async def test_reviews_come_are_rewritten_and_disappear() -> None:
    index = loved(odd=False)
    async with visiting(QUIET, CATALOGUE) as client:
        days = []
        for _ in range(3):
            days.append(
                {
                    one["id"]["label"]: one
                    for page in range(1, 11)
                    for one in reviews(await entries(client, path(index, page)))
                }
            )
            await asyncio.sleep(5 * 86_400)

    first, second, third = days
    assert set(second) - set(first)
    changed = [id for id in {*first} & {*third} if first[id]["updated"] != third[id]["updated"]]
    assert changed
    assert all(third[id]["title"]["label"].startswith("Changed my mind: ") for id in changed)
    assert all(third[id]["updated"]["label"] > first[id]["updated"]["label"] for id in changed)
    oldest = min(one["updated"]["label"] for one in third.values())
    taken = [id for id, one in first.items() if id not in third and one["updated"]["label"] > oldest]
    assert taken


@virtual
async def test_the_most_helpful_come_first_if_asked_for() -> None:
    index = loved(odd=True)
    async with visiting(QUIET, CATALOGUE) as client:
        found = await entries(client, path(index, order="mostHelpful"))

    votes = [int(entry["im:voteSum"]["label"]) for entry in found]
    assert votes == sorted(votes, reverse=True)
    assert votes[0] > 3


@virtual
@pytest.mark.parametrize(
    "feed, seen",
    [
        ("open", {"plain json", "plain xml", "browser json", "browser xml", "itunes json", "itunes xml"}),
        ("plain", {"plain json", "plain xml", "itunes json", "itunes xml"}),
        ("itunes", {"itunes xml"}),
        ("none", set()),
    ],
)
async def test_a_feed_is_empty_for_a_client_that_it_refuses(feed: Any, seen: set[str]) -> None:
    index = loved(odd=True)
    agents = {"plain": "python", "browser": BROWSER, "itunes": "iTunes/12.12 (Macintosh)"}
    shown = set()
    async with visiting(faulty(review_feed=feed), CATALOGUE) as client:
        for name, agent in agents.items():
            for form in ("json", "xml"):
                answer = await client.get(path(index, form=form), headers={"user-agent": agent})
                assert answer.status_code == 200
                if answer.content.count(b"im:rating") or answer.content.count(b"rating>"):
                    shown.add(f"{name} {form}")

    assert shown == seen


@virtual
async def test_the_page_shows_ten_of_the_same_reviews() -> None:
    index = loved(odd=True)
    async with visiting(QUIET, CATALOGUE) as client:
        told = await entries(client, path(index))
        page = (await client.get(page_path(CATALOGUE, index) + "?see-all=reviews")).text

    shown = [item["review"] for item in shelves_of(page)["allProductReviews"]["items"]]
    assert [review["id"] for review in shown] == [entry["id"]["label"] for entry in told[:10]]
    assert [review["contents"] for review in shown] == [entry["content"]["label"] for entry in told[:10]]


@virtual
async def test_an_app_with_few_ratings_has_few_reviews_or_none() -> None:
    counts = {}
    async with visiting(QUIET, CATALOGUE) as client:
        for low, high in ((0, 1), (40, 66), (300, 600)):
            index = next(
                i for i in range(3_000) if CATALOGUE.sold(i, 0, "us") and low <= CATALOGUE.app(i).rating_count(0) < high
            )
            counts[low] = len(reviews(await entries(client, path(index))))

    assert counts[0] == 0
    assert counts[40] <= 3
    assert 5 <= counts[300] <= 25


@virtual
async def test_the_unhappy_of_a_market_miss_the_same_thing() -> None:
    niche = next(market for market in CATALOGUE.markets if market.niche)
    complaints: Counter[str] = Counter()
    async with visiting(QUIET, CATALOGUE) as client:
        for position in range(12):
            found = reviews(await entries(client, path(CATALOGUE.at(niche, position))))
            complaints.update(one["title"]["label"] for one in found if one["im:rating"]["label"] in "12")

    (_, most), (_, second) = complaints.most_common(2)
    assert complaints.total() > 50
    assert most > 2 * second


@virtual
async def test_some_reviews_mean_harm_and_some_never_end() -> None:
    texts = []
    async with visiting(QUIET, CATALOGUE) as client:
        for index in [i for i in CATALOGUE.popular(36) if CATALOGUE.app(i).rating_count(0) > 20_000][:8]:
            for page in range(1, 11):
                texts += [one["content"]["label"] for one in reviews(await entries(client, path(index, page)))]

    for sign in ("=IMPORTXML(", "<img src=x", "\u202e", "\x00", "drop table", "👎🏿"):
        assert any(sign in text for text in texts), repr(sign)
    assert max(map(len, texts)) > 5_000


@virtual
async def test_a_feed_can_be_cut_short_or_empty() -> None:
    index = loved(odd=True)
    faults = (Fault("truncated", "reviews", requests=(1, 2)), Fault("empty", "reviews", requests=(3, 3)))
    async with visiting(faulty(*faults), CATALOGUE) as client:
        cut, atom, empty = [await client.get(path(index, form=form)) for form in ("json", "xml", "json")]

    with pytest.raises(json.JSONDecodeError):
        cut.json()
    with pytest.raises(ElementTree.ParseError):
        ElementTree.fromstring(atom.content)
    assert "entry" not in empty.json()["feed"]
