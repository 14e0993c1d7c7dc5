"""Whatever the store answers, it is facts that keep to the rules, or it cannot be read: nothing else ever comes out."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock_systems.appstore.store.charts import parse_chart
from penstock_systems.appstore.store.genres import parse_genres
from penstock_systems.appstore.store.hints import parse_hints
from penstock_systems.appstore.store.lookup import parse_lookup, parse_portfolio
from penstock_systems.appstore.store.page import parse_page
from penstock_systems.appstore.store.ratings import parse_ratings
from penstock_systems.appstore.store.reviews import parse_reviews
from penstock_systems.appstore.store.search import parse_search
from tests.extent import EVERYTHING
from tests.systems.appstore.store_shapes import POCKET_LEDGER, check_facts, page, shape, shoebox_page

Parse = Callable[[bytes], Any]

JSON_ANSWERS: dict[str, tuple[str, Parse]] = {
    "search": ("search.json", parse_search),
    "lookup": ("search.json", parse_lookup),
    "portfolio": ("portfolio.json", lambda body: parse_portfolio(body, 900_001)),
    "chart": ("chart.json", parse_chart),
    "chart of a genre": ("chart.json", lambda body: parse_chart(body, genre_id=6015)),
    "reviews": ("reviews.json", lambda body: parse_reviews(body, "json")),
    "genres": ("genres.json", parse_genres),
    "page": ("page.json", lambda body: parse_page(page(body), POCKET_LEDGER)),
    "shoebox": ("shoebox.json", lambda body: parse_page(shoebox_page(body), POCKET_LEDGER)),
}
ANSWERS: dict[str, tuple[bytes, Parse]] = {
    **{name: (shape(file), parse) for name, (file, parse) in JSON_ANSWERS.items()},
    "reviews as xml": (shape("reviews.xml"), lambda body: parse_reviews(body, "xml")),
    "hints": (shape("hints.xml"), parse_hints),
    "ratings": (shape("ratings.html"), parse_ratings),
    "a whole page": (page(), lambda body: parse_page(body, POCKET_LEDGER)),
    "markup": (shape("markup.html"), lambda body: parse_page(body, POCKET_LEDGER)),
}

hostile = st.one_of(
    st.text(st.characters(categories=None), max_size=30),
    st.sampled_from(
        ["\u202eevil", "=cmd|'/c calc'!A1", "<img onerror=x>", "\x00", "", "9" * 400, "1e400", "javascript:x"]
    ),
)
numbers = st.one_of(st.integers(), st.floats(), st.sampled_from([10**400, -0.0, 2**63, 2**64]))
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, hostile),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(
            st.one_of(hostile, st.sampled_from(["label", "attributes", "id", "items", "d", "data"])), inner
        ),
    ),
    max_leaves=12,
)
fuzzed = settings(max_examples=200 if EVERYTHING else 30, suppress_health_check=list(HealthCheck))


@pytest.fixture(autouse=True)
def kept_on() -> None:
    """Nothing here is kept anywhere."""


def check(parse: Parse, body: bytes) -> None:
    try:
        facts = parse(body)
    except ps.Unparsable:
        return
    check_facts(facts)


@pytest.mark.parametrize("name", ANSWERS)
@fuzzed
@given(data=st.data())
def test_damaged_bytes_are_facts_or_cannot_be_read(name: str, data: st.DataObject) -> None:
    body, parse = ANSWERS[name]
    damaged = bytearray(body)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged)))
        taken = data.draw(st.integers(0, 40))
        damaged[at : at + taken] = data.draw(st.binary(max_size=12))
    check(parse, bytes(damaged[: data.draw(st.integers(0, len(damaged)))] if data.draw(st.booleans()) else damaged))


@pytest.mark.parametrize("name", JSON_ANSWERS)
@fuzzed
@given(data=st.data())
def test_any_value_in_any_place_is_facts_or_cannot_be_read(name: str, data: st.DataObject) -> None:
    file, parse = JSON_ANSWERS[name]
    root = json.loads(shape(file), parse_constant=lambda _: None)
    for _ in range(data.draw(st.integers(1, 3))):
        root = replaced(root, data)
    check(parse, json.dumps(root).encode("utf-8"))


@pytest.mark.parametrize("name", ANSWERS)
@fuzzed
@given(value=anything)
def test_any_json_at_all_is_facts_or_cannot_be_read(name: str, value: Any) -> None:
    check(ANSWERS[name][1], json.dumps(value).encode())


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"feed":' * 20_000, b"<a>" * 50_000, b"<script<script" * 20_000])
def test_endless_nesting_is_facts_or_cannot_be_read(name: str, body: bytes) -> None:
    check(ANSWERS[name][1], body)


def replaced(node: Any, data: st.DataObject) -> Any:
    """The tree with something else in one of its places."""
    if isinstance(node, dict) and node and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(node)))
        return {**node, key: replaced(node[key], data)}
    if isinstance(node, list) and node and data.draw(st.integers(0, 9)):
        at = data.draw(st.integers(0, len(node) - 1))
        return [*node[:at], replaced(node[at], data), *node[at + 1 :]]
    return data.draw(anything)
