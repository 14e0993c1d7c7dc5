"""Binding: every name gets one value that both databases can store, or the caller is told which does not fit."""

from __future__ import annotations

import uuid
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from types import MappingProxyType

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import BadParameter, TooLarge
from penstock.model.parameters import Json, as_json, bind, size_of
from penstock.model.statement import scan

ONE = scan("select :value")
APP = scan("insert into apps (track_id, name) values (:track_id, :name)")


class Listing(msgspec.Struct):
    track_id: int
    name: str
    genre: str = "games"


@dataclass
class Found:
    track_id: int
    name: str
    rank: int = 1


class Colour(Enum):
    RED = "red"


class Rank(IntEnum):
    FIRST = 1


class Kind(StrEnum):
    FREE = "free"


# -- which value belongs to which name ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given_values, named",
    [
        ({"track_id": 7, "name": "a"}, {}),
        (MappingProxyType({"track_id": 7, "name": "a"}), {}),
        (Listing(7, "a"), {}),
        (Found(7, "a"), {}),
        (None, {"track_id": 7, "name": "a"}),
        ({"track_id": 7}, {"name": "a"}),
        (Listing(7, "b"), {"name": "a"}),
        (Found(7, "b"), {"name": "a"}),
        ({"track_id": 7, "name": "b"}, {"name": "a"}),
    ],
)
def test_values_come_from_a_mapping_a_struct_a_dataclass_or_keywords(
    given_values: object, named: dict[str, object]
) -> None:
    assert bind(APP, given_values, named) == {"track_id": 7, "name": "a"}


def test_missing_and_unexpected_names_are_both_listed() -> None:
    with pytest.raises(BadParameter, match="missing: name; unexpected: nmae") as refused:
        bind(APP, {"track_id": 7, "nmae": "a"}, {})

    assert refused.value.facts == {"missing": ["name"], "unexpected": ["nmae"]}


@pytest.mark.parametrize(
    "given_values, named",
    [
        ({"track_id": 7}, {}),
        ({"track_id": 7, "name": "a", "more": 1}, {}),
        (None, {}),
        (None, {"track_id": 7, "name": "a", "more": 1}),
        (Listing(7, "a"), {"more": 1}),
        ({1: 2, "name": "a"}, {}),
        (defaultdict(int, track_id=1, nmae=2), {}),
    ],
)
def test_a_name_too_few_or_too_many_is_refused(given_values: object, named: dict[str, object]) -> None:
    with pytest.raises(BadParameter, match="missing"):
        bind(APP, given_values, named)


def test_a_field_without_a_value_is_missing() -> None:
    @dataclass
    class Unfinished:
        track_id: int
        name: str = field(init=False)

    with pytest.raises(BadParameter, match="missing: name"):
        bind(APP, Unfinished(1), {})


def test_a_long_list_of_wrong_names_is_cut() -> None:
    with pytest.raises(BadParameter, match=r"unexpected: n0, .*, n9 and 90 more"):
        bind(ONE, {f"n{i}": i for i in range(100)}, {})


@pytest.mark.parametrize("given_values", [(7, "a"), [7, "a"], "ab", 7, Listing, Found])
def test_anything_else_cannot_be_bound(given_values: object) -> None:
    with pytest.raises(BadParameter, match="Give a dict"):
        bind(APP, given_values, {})


# -- what a value becomes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value, stored",
    [
        (None, None),
        (True, 1),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (1.5, 1.5),
        ("grün", "grün"),
        (b"\0", b"\0"),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"abcd")[::2], b"ac"),
        (datetime(2026, 11, 15, 9, 30, 0, 999_999, tzinfo=UTC), "2026-11-15 09:30:00"),
        (datetime(2026, 11, 15, 1, tzinfo=timezone(timedelta(hours=2))), "2026-11-14 23:00:00"),
        (date(2026, 1, 2), "2026-01-02"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Colour.RED, "red"),
        (Rank.FIRST, 1),
        (Kind.FREE, "free"),
        (Json.of({"a": [1, None]}), '{"a":[1,null]}'),
    ],
)
def test_a_value_becomes_what_both_databases_store(value: object, stored: object) -> None:
    bound = bind(ONE, {"value": value}, {})["value"]

    assert bound == stored
    assert type(bound) is type(stored)


@pytest.mark.parametrize(
    "value, way_out",
    [
        (2**63, "64"),
        (-(2**63) - 1, "64"),
        pytest.param(10**5000, "64", id="too long to print"),
        (float("nan"), "NULL"),
        (float("-inf"), "NULL"),
        ("a\0b", "NUL"),
        ("\ud83d", "surrogate"),
        (datetime(2026, 11, 15), "time zone"),  # noqa: DTZ001
        (Decimal("1.5"), "cents"),
        ({"a": 1}, r"db\.json"),
        ([1], r"db\.json"),
        ((1,), r"db\.json"),
        (Listing(1, "a"), r"db\.json"),
        (Found(1, "a"), r"db\.json"),
        (timedelta(1), "Turn it into"),
        (object(), "Turn it into"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_name_and_the_way_out(value: object, way_out: str) -> None:
    with pytest.raises(BadParameter, match=f"^:value of `select :value`: .*{way_out}") as refused:
        bind(ONE, {"value": value}, {})

    assert refused.value.facts["name"] == "value"


@pytest.mark.spec("A8-14")
def test_json_text_can_be_queried() -> None:
    db = apsw.Connection(":memory:")
    db.execute("create table apps (name text, purchases text)")
    write = scan("insert into apps (name, purchases) values (:name, :purchases)")
    for name, price in (("dear", 12.99), ("cheap", 0.99)):
        purchases = Json.of([{"title": "gems", "price": price}, {"title": "more", "price": 99}])
        db.execute(write.text, bind(write, {"name": name, "purchases": purchases}, {}))

    dear = db.execute("select name from apps where json_extract(purchases, '$[0].price') > 9.99").fetchall()

    assert dear == [("dear",)]


def test_json_is_taken_when_it_is_wrapped() -> None:
    value = [1]
    wrapped = Json.of(value)
    value.append(2)

    assert wrapped.text == "[1]"


@pytest.mark.parametrize("value", [object(), "\ud800", {"a": {1: object()}}])
def test_what_has_no_json_is_refused(value: object) -> None:
    with pytest.raises(BadParameter, match="JSON"):
        as_json(value)


def test_a_value_that_holds_itself_has_no_json() -> None:
    circle: list[object] = []
    circle.append(circle)

    with pytest.raises(BadParameter, match="JSON"):
        as_json(circle)


# -- sizes ------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A8-16", "A15-15")
def test_a_row_over_its_limit_is_refused_with_both_numbers() -> None:
    assert bind(APP, {"track_id": 1, "name": "ü" * 46}, {}, row_bytes_max=100)
    with pytest.raises(TooLarge, match="102 bytes, and a row may have 100") as refused:
        bind(APP, {"track_id": 1, "name": "ü" * 47}, {}, row_bytes_max=100)

    assert refused.value.facts == {"size": 102, "allowed": 100}


def test_size_counts_text_in_bytes_and_numbers_as_eight() -> None:
    assert size_of({"a": None, "b": 1, "c": 1.5, "d": "ü!", "e": b"abc", "f": "abc"}) == 0 + 8 + 8 + 3 + 3 + 3


# -- properties -------------------------------------------------------------------------------------------------

PLAIN = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0")),
    st.binary(),
)


@given(PLAIN)
def test_a_plain_value_comes_back_from_the_database_as_it_was(value: object) -> None:
    bound = bind(ONE, {"value": value}, {})

    assert apsw.Connection(":memory:").execute(ONE.text, bound).get == value
    assert bind(ONE, None, {"value": value}, row_bytes_max=size_of(bound) or 1) == bound


ANYTHING = st.recursive(
    PLAIN
    | st.floats()
    | st.integers()
    | st.booleans()
    | st.datetimes()
    | st.decimals()
    | st.uuids()
    | st.text("\ud800\0a"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(
    ANYTHING | st.dictionaries(st.sampled_from(["value", "other"]), ANYTHING),
    st.dictionaries(st.just("value"), ANYTHING),
)
def test_any_value_is_bound_or_refused_by_name(given_values: object, named: dict[str, object]) -> None:
    try:
        bound = bind(ONE, given_values, named)
    except BadParameter:
        return  # any other exception fails the test
    assert list(bound) == ["value"]
    assert type(bound["value"]) in (type(None), int, float, str, bytes)
