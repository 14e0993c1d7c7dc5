"""The report's page: it loads nothing, runs nothing, and nothing that a stranger wrote gets out of its place."""

from __future__ import annotations

import math
import random
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from penstock_systems.appstore.reading import cards, plots
from penstock_systems.appstore.reading.facts import Market, PacePoint, Report
from penstock_systems.appstore.reading.page import STYLE, html
from tests.systems.appstore.market_rows import HOSTILE

pytestmark = pytest.mark.only_on("sqlite")

TAGS = {
    *"html head meta title style body header main section article nav h1 h2 h3 h4 p a b i bdi br span div".split(),
    *"ol ul li dl dt dd figure figcaption blockquote table thead tbody tr th td details summary".split(),
    *"svg g circle line rect polyline polygon text".split(),
}
ATTRIBUTES = {
    *"charset http-equiv content name lang dir id class href rel aria-label scope colspan role viewbox".split(),
    *"x y x1 y1 x2 y2 cx cy r width height points preserveaspectratio".split(),
}
ALONE = {"meta", "br"}


class Page(HTMLParser):
    """Reads a page as a browser does, and keeps what is in it."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ALONE:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")


def hostile(kind: Any, text: str) -> Any:
    """A report in which every text is a hostile one."""
    if kind is str:
        return text
    if kind in (int, float):
        return kind(7)
    if kind is bool:
        return False
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = msgspec.structs.fields(kind)
        return kind(**{field.name: _told(field.name, hostile(field.type, text)) for field in fields})
    inner = [each for each in getattr(kind, "__args__", ()) if each is not type(None)]
    if getattr(kind, "__origin__", None) is list:
        return [hostile(inner[0], text), hostile(inner[0], text)]
    return hostile(inner[0], text) if inner else None


def _told(name: str, value: Any) -> Any:
    if name in ("at", "begins", "ends"):
        return "2026-01-01 00:00:00"
    if name == "trends":
        return {"since": "2026-01-01 00:00:00"} | {
            kind: [dict.fromkeys(row, TEXT.get()) | NUMBERS]
            for kind, row in (
                ("rising_apps", ("track_name", "primary_genre")),
                ("climbers", ("track_name", "collection", "category", "category_name")),
                ("rising_clusters", ("name",)),
            )
        }
    return value


class _Text:
    """The text that is tried at the moment."""

    text = ""

    def get(self) -> str:
        return self.text


TEXT = _Text()
NUMBERS = {"rating_velocity_7d": 1.0, "rank": 1, "was": 2, "opportunity_score": 2.0}


def full(text: str) -> Report:
    TEXT.text = text
    made: Report = hostile(Report, text)
    apps = [msgspec.structs.replace(app, url=None) for app in made.opportunities[0].reference_apps]
    one = msgspec.structs.replace(made.opportunities[0], reference_apps=apps)
    return msgspec.structs.replace(made, opportunities=[one], pace=_pace(made))


def _pace(made: Report) -> list[PacePoint]:
    return [msgspec.structs.replace(each, busy=True, out=False) for each in made.pace]


@pytest.mark.fault("F44")
@pytest.mark.parametrize("text", [*HOSTILE, "\x00\x08\ud800", "</style><script>alert(1)</script>", "&lt;b&gt; &#60;"])
def test_no_text_gets_out_of_its_place(text: str) -> None:
    page = Page(html(full(text)))

    assert page.open == []
    assert {tag for tag, _ in page.tags} <= TAGS
    assert {name for _, attributes in page.tags for name in attributes} <= ATTRIBUTES
    shown = "".join(page.texts).replace(STYLE, "")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


def test_what_strangers_wrote_is_isolated_so_that_it_turns_nothing_around_it() -> None:
    page = Page(html(full("عادات يومية")))

    stack: list[str] = []
    for tag, attributes in page.tags:
        if tag == "bdi":
            assert attributes == {"dir": "auto"}
            stack.append(tag)
    assert len(stack) >= 20
    assert ".plot text { fill: var(--ink); unicode-bidi: plaintext; }" in STYLE


@pytest.mark.fault("F44")
def test_the_page_may_load_nothing_and_run_nothing() -> None:
    text = html(full("habit"))
    page = Page(text)

    (policy,) = [each["content"] for tag, each in page.tags if each.get("http-equiv") == "Content-Security-Policy"]
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    digest = b64encode(sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert not re.search(r"url\(|@import|expression\(|</", style)
    assert not [each for _, each in page.tags if {"src", "srcset", "style"} & set(each)]
    assert all(each["href"].startswith(("#", "https://")) for tag, each in page.tags if tag == "a")


def test_links_between_sections_lead_somewhere() -> None:
    page = Page(html(full("habit")))

    ids = {each["id"] for tag, each in page.tags if "id" in each}
    assert {each["href"][1:] for tag, each in page.tags if each.get("href", "").startswith("#")} == ids
    assert {"opportunities", "markets", "moved", "pace", "data"} == ids


def test_a_section_without_facts_is_left_out() -> None:
    bare = msgspec.structs.replace(full("habit"), pace=[], markets=[], franchises=[], opportunities=[])

    text = html(bare)

    assert 'id="pace"' not in text
    assert "No market has been evaluated yet." in text
    assert "No market is known yet." in text


# -- the plane ------------------------------------------------------------------------------------------------------


def test_every_number_on_the_plane_can_be_read_and_stays_near_its_place(seed: int) -> None:
    chance = random.Random(seed)
    markets = [market(number, 90.0 - number, chance.uniform(60, 70), chance.uniform(30, 40)) for number in range(1, 41)]
    markets[1] = market(2, 88.0, markets[0].demand or 0.0, markets[0].competitiveness or 0.0)  # at the same place

    ranks = {market.id: market.number for market in markets[:10]}
    for plot in plots.plane(markets, [market(0, 60.0, 65.0, 35.0, franchise="blokoria")], ranks):
        assert len(plot["points"]) == 41
        numbered = plot["points"][-10:]
        assert [point["rank"] for point in numbered] == [*range(10, 0, -1)], "what has a number lies on top"
        for place, point in enumerate(numbered):
            for other in numbered[place + 1 :]:
                apart = math.dist((point["x"], point["y"]), (other["x"], other["y"]))
                assert apart > point["r"] + other["r"] - 1
            assert plot["left"] <= point["x"] <= plot["right"]
        middle_x, middle_y = (sum(point[axis] for point in numbered) / 10 for axis in ("x", "y"))
        good = plot["good"]
        assert abs(middle_x - (good["x"] + good["w"] * 15 / 50)) < 30
        assert abs(middle_y - (good["y"] + good["h"] * 35 / 50)) < 30


def test_demand_goes_to_the_right_and_ease_upwards_and_a_franchise_is_set_apart() -> None:
    wanted, easy = market(1, 80.0, 90.0, 80.0), market(2, 70.0, 10.0, 5.0)

    wide, narrow = plots.plane([wanted, easy], [market(0, 60.0, 50.0, 50.0, franchise="blokoria")], {easy.id: 1})

    at = {point["market"].number: point for point in wide["points"]}
    assert at[1]["x"] > at[0]["x"] > at[2]["x"]
    assert at[1]["y"] > at[0]["y"] > at[2]["y"]
    assert [at[number]["class"] for number in (0, 1, 2)] == ["owned", "s4", "s3"]
    assert (wide["class"], narrow["class"]) == ("wide", "narrow")
    # Its number is that of its card, whatever its place in the table is.
    assert {point["market"].number: point["rank"] for point in wide["points"]} == {0: 0, 1: 0, 2: 1}


# -- the cards ------------------------------------------------------------------------------------------------------

FACTS = {
    "demand": 72.0,
    "competitiveness": 38.0,
    "dissatisfaction": 61.0,
    "room": None,
    "figures": {"stars": 3.4, "leaders_abandoned": 2, "leaders_known": 5},
    "keywords": [
        {"keyword": "rain", "typed": None},
        {"keyword": "white noise", "typed": 4},
        {"keyword": "sleep", "typed": 3},
    ],
    "strongest": [
        {
            "track_id": 1,
            "name": "Calm Rain",
            "ratings": 900,
            "stars": 3.2,
            "idle_days": 730,
            "url": "https://apps.example/1",
        },
        {"track_id": 2, "name": "Noisy", "ratings": 30, "stars": None, "idle_days": None, "url": "javascript:alert(1)"},
    ],
    "apps": [{"price": 0.0, "languages": 1}, {"price": 0.0, "languages": 1}, {"price": 1.99, "languages": 4}],
    "complaints": [
        {"term": "ads", "reviews": 9, "quote": "Ads everywhere.", "app": "Calm Rain", "at": "2026-01-01"},
    ],
    "favour": [{"text": "2 of 5 had no update.", "rows": ["app:1", "app:9", "market:3"]}],
    "against": {"text": "It is small.", "rows": ["market:3"]},
    "beat": [{"track_id": 1, "why": "3.2 stars; no update for 2.0 years"}],
}


def test_a_card_says_the_need_the_gap_the_price_and_whom_to_beat() -> None:
    told = cards.told(FACTS, links=True)

    assert told.need == (
        "Users look for “sleep” and “white noise”. Those who are unhappy with what they find complain most about “ads”."
    )
    assert told.gap == (
        "The ten most rated apps have 3.4 stars on average; 2 of the 5 most rated had no update for a year; "
        "2 of the 3 most visible are in one language only."
    )
    assert told.price == (
        "2 of the 3 most visible apps are free to download, and none sells in-app purchases: few users pay here."
    )
    assert [(part.title, part.score) for part in told.parts] == [
        ("demand", 72.0),
        ("ease", 62.0),
        ("unhappy users", 61.0),
    ]
    assert [(rival.name, rival.share, rival.why) for rival in told.rivals] == [
        ("Calm Rain", 1.0, "rated low; no update for 2.0 years"),
        ("Noisy", 0.033, None),
    ]
    assert [app.url for app in told.favour[0].apps] == ["https://apps.example/1"]
    assert told.rivals[1].url is None


@pytest.mark.parametrize(
    "apps, price",
    [
        ([], ""),
        (
            [(1.99, []), (2.99, []), (4.99, []), (0.0, [9.99])],
            "3 of the 4 most visible apps cost something, 2.99 at the median: charge as much.",
        ),
        (
            [(0.0, [9.99]), (0.0, [0.99, 4.99]), (0.0, [4.99]), (1.99, [])],
            "3 of the 4 most visible apps are free to download. 3 sell in-app purchases, the cheapest for 4.99 at the "
            "median: start at this price.",
        ),
        (
            [(0.0, [9.99]), (0.0, [])],
            "2 of the 2 most visible apps are free to download, and only one sells in-app purchases: few users pay here.",
        ),
    ],
)
def test_the_price_is_that_of_the_apps_or_of_what_they_sell_inside(
    apps: list[tuple[float, list[float]]], price: str
) -> None:
    told = cards.told({"apps": [{"name": "App", "price": each, "purchases": sold} for each, sold in apps]}, links=True)

    assert told.price == price


def test_a_price_has_the_currency_in_which_the_store_shows_it() -> None:
    sold = {"name": "App", "price": 0.0, "purchases": [9.99, 2.99], "shown_purchases": ["9,99 €", "2,99 €"]}
    paid = {"name": "App", "price": 4.99, "shown_price": "4,99 €"}

    assert "the cheapest for 2,99 € at the median" in cards.told({"apps": [sold] * 3}, links=True).price
    assert "cost something, 4,99 € at the median" in cards.told({"apps": [paid] * 3}, links=True).price


def test_apps_that_are_made_up_have_no_link() -> None:
    told = cards.told(FACTS, links=False)

    assert {app.url for app in told.favour[0].apps} | {rival.url for rival in told.rivals} == {None}


def test_of_an_evaluation_of_an_earlier_version_a_card_shows_what_there_is() -> None:
    told = cards.told({"demand": 60.0, "apps": 5, "figures": 3, "against": "text"}, links=True)

    assert (told.need, told.gap, told.price, told.rivals, told.against) == ("", "", "", [], None)
    assert [part.title for part in told.parts] == ["demand"]


def market(number: int, score: float, demand: float, difficulty: float, **more: Any) -> Market:
    return Market(
        number=number,
        id=number,
        name=f"market {number}",
        score=score,
        change=None,
        demand=demand,
        competitiveness=difficulty,
        apps=5,
        keywords=3,
        history=[score],
        **more,
    )
