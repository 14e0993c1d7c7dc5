"""Tagged binary: values that JSON does not know come back as they were, and hostile bytes make nothing."""

from __future__ import annotations

import pickle
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.tagged import MARK, BadTagged, decode, encode

VALUES: list[object] = [
    None,
    {"at": datetime(2026, 11, 15, 9, 30, 0, 123_456, tzinfo=UTC), "raw": b"\x00\xff", "seen": {1, "a", b"c"}},
    datetime(2026, 11, 15, 9, 30),  # noqa: DTZ001 (a time without a zone stays one)
    datetime(2026, 11, 15, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    date(2026, 11, 15),
    frozenset({frozenset({1, 2}), frozenset()}),
    UUID(int=7),
    Decimal("1.50"),
    [2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 2**500, 1.5, True],
    {1: "one", b"two": 2, "three": [[], {}, set()]},
    [[1, [2]], {"a": [3]}, 4],  # members that follow a nested container
]


@pytest.mark.spec("G4-37")
@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_a_value_comes_back_as_it_was(value: object) -> None:
    back = decode(encode(value))

    assert back == value
    assert type(back) is type(value)


@pytest.mark.spec("G4-37")
@pytest.mark.parametrize(
    "hostile",
    [
        b"",
        MARK,
        pickle.dumps({"a": 1}),
        pickle.dumps(date(2026, 1, 1), protocol=0),
        b'{"a": 1}',
        msgspec.msgpack.encode({"a": 1}),
        MARK + b"\xdd\xff\xff\xff\xff",  # a list that claims four billion members
        MARK + b"\xdf\x7f\xff\xff\xff",
        MARK + b"\xc6\xff\xff\xff\xff",
        MARK + b"\xdb\xff\xff\xff\xff",
        MARK + b"\x91" * 65 + b"\xc0",
        MARK + b"\x91" * 100_000,
        MARK + b"\xc0\xc0",  # something follows
        MARK + b"\xc1",
        MARK + b"\xd4\x63\x00",  # a tag that does not exist
        MARK + b"\xd4\x03\xc0",  # a set of nothing that could be in one
        MARK + b"\xd5\x03\x91\x90",  # a set of lists
        MARK + b"\x81\x81\x01\x01\x02",  # a dict as a key
        MARK + b"\xd4\x06x",
        MARK + b"\xd4\x01\xff",
        MARK + b"\xd4\x05\x00",
        MARK + b"\xa1\xff",
    ],
    ids=lambda hostile: repr(hostile)[:24],
)
def test_hostile_bytes_are_refused(hostile: bytes) -> None:
    with pytest.raises(BadTagged):
        decode(hostile)


def test_sets_inside_sets_have_the_same_bound_as_lists() -> None:
    nested: frozenset[object] = frozenset()
    for _ in range(63):
        nested = frozenset({nested})
    assert decode(encode(nested)) == nested

    with pytest.raises(BadTagged, match="64 levels"):
        encode(frozenset({frozenset({nested})}))


@pytest.mark.parametrize(
    "value",
    [object(), {"a": object()}, {(1, 2): 3}, [1 << 100_000], lambda: None],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_plain_value_is_not_written(value: object) -> None:
    with pytest.raises(BadTagged):
        encode(value)


def test_a_value_inside_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(BadTagged, match="64 levels"):
        encode(endless)


@given(st.binary(max_size=40), st.booleans())
def test_any_bytes_are_a_value_or_refused(data: bytes, marked: bool) -> None:
    try:
        decode(MARK + data if marked else data)
    except BadTagged:
        pass
