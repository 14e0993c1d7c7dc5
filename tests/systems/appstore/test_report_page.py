"""The report's page: it loads nothing, runs nothing, and nothing that a stranger wrote gets out of its place."""

from __future__ import annotations

import random
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from penstock_systems.appstore.reading import facts, labels, layout
from penstock_systems.appstore.reading.facts import Market, Relation, Report
from penstock_systems.appstore.reading.page import STYLE, html
from penstock_systems.appstore.reading.plots_map import market_map
from tests.systems.appstore.market_rows import HOSTILE

pytestmark = pytest.mark.only_on("sqlite")

TAGS = {
    *"html head meta title style body header main section nav h1 h2 h3 p a b i bdi br span div ul li dl dt dd".split(),
    *"table thead tbody tr th td details summary svg g circle line rect polyline text".split(),
}
ATTRIBUTES = {
    *"charset http-equiv content name lang dir id class href rel aria-label scope colspan role viewbox".split(),
    *"x y x1 y1 x2 y2 cx cy r rx width height points stroke-width".split(),
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
    return msgspec.structs.replace(made, opportunities=[one], relations=[Relation(a=7, b=7, weight=0.5)])


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
    assert {"opportunities", "map", "moved", "pace", "funnel", "cost", "reading"} == ids


def test_a_section_without_facts_is_left_out() -> None:
    bare = msgspec.structs.replace(full("habit"), pace=[], markets=[], relations=[], opportunities=[])

    text = html(bare)

    assert 'id="pace"' not in text
    assert "No market has been evaluated yet." in text
    assert "No market is known yet." in text


# -- the map --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("many", [1, 2, 9, 40])
@pytest.mark.parametrize("width, high, more", [(960, 320, 9), (400, 300, 15)])
def test_no_bubble_covers_another_and_no_name_covers_anything(
    many: int, width: int, high: int, more: int, seed: int
) -> None:
    chance = random.Random(seed)
    height = high + more * many
    sizes = [chance.uniform(0, 100) for _ in range(many)]
    ties = {(a, b): chance.random() for a in range(many) for b in range(a + 1, many) if chance.random() < 2 / many}
    words = "a planner for everything you do,birds,中国菜谱,عادات,intermittent fasting".split(",")
    names = [chance.choice(words) for _ in range(many)]

    bubbles = layout.placed(sizes, ties, width=width, height=height)
    found = labels.placed(names, bubbles, width=width, height=height)

    for place, bubble in enumerate(bubbles):
        assert bubble.radius <= bubble.x <= width - bubble.radius
        assert bubble.radius <= bubble.y <= height - bubble.radius
        for other in bubbles[place + 1 :]:
            far = ((bubble.x - other.x) ** 2 + (bubble.y - other.y) ** 2) ** 0.5
            assert far > bubble.radius + other.radius
    boxes = [(label, box) for label, box in ((label, box_of(label)) for label in found if label) if not label.inside]
    for place, (label, box) in enumerate(boxes):
        assert box.left > 0 and box.right < width and box.top > 0 and box.bottom < height  # noqa: PT018
        assert not [other for _, other in boxes[place + 1 :] if box.meets(other)]
        own = bubbles[found.index(label)]
        assert not [bubble for bubble in bubbles if bubble is not own and box.meets_bubble(bubble)]


def test_names_have_a_place_where_there_is_room() -> None:
    names = [
        "habit tracker",
        "plant care",
        "budget planner",
        "sleep sounds",
        "birdsong identification",
        "a very long name",
    ]
    bubbles = layout.placed([90, 70, 80, 60, 30, 10], {(0, 2): 0.4}, width=960, height=400)

    found = labels.placed(names, bubbles, width=960, height=400)

    assert None not in found
    assert [len(label.lines) for label in found if label] == [1, 1, 1, 1, 2, 1]


def box_of(label: labels.Label) -> labels.Box:
    half = max(map(labels.width_of, label.lines)) / 2
    top = label.y - 0.78 * labels.HIGH
    return labels.Box(label.x - half, top, label.x + half, top + labels.HIGH * len(label.lines))


def test_the_map_is_the_same_each_time_and_says_in_words_what_it_shows() -> None:
    markets = [market(number, 90.0 - 10 * number) for number in range(1, 9)]
    ties = [facts.Relation(a=1, b=2, weight=0.4)]

    drawn = market_map(markets, ties)

    assert drawn == market_map(list(markets), list(ties))
    assert drawn.count("<circle") == 16  # on a wide screen and on a phone
    assert "3. market 3: score 60.0, demand 50.0, strength of its apps 40.0, 5 apps" in drawn
    assert [shade in drawn for shade in ("bubble s4", "bubble s3", "bubble s0")] == [True, True, True]


def market(number: int, score: float) -> Market:
    return Market(
        number=number,
        id=number,
        name=f"market {number}",
        score=score,
        change=None,
        demand=50.0,
        competitiveness=40.0,
        fragmentation=60.0,
        apps=5,
        keywords=3,
        history=[score],
    )
