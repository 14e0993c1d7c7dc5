"""Whether a payload fits the type that a run waits for: as msgspec would decide, with the field named."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from penstock.model.expectation import SCHEMA_BYTES_MAX, Expectation, expect, misfit


class Person(msgspec.Struct):
    name: str
    age: int | None = None


class Review(msgspec.Struct, forbid_unknown_fields=True):
    ok: bool
    by: Person
    tags: list[str] = []
    verdict: Literal["keep", "drop"] = "keep"
    scores: dict[str, float] = {}


GOOD = {"ok": True, "by": {"name": "Ada"}}


@pytest.mark.parametrize(
    "type, payload",
    [
        (Review, GOOD),
        (Review, GOOD | {"tags": ["a"], "verdict": "drop", "scores": {"a": 1, "b": 0.5}}),
        (Review, {"ok": True}),
        (Review, GOOD | {"by": {"age": 5}}),
        (Review, GOOD | {"by": {"name": "Ada", "age": "5"}}),
        (Review, GOOD | {"ok": 1}),
        (Review, GOOD | {"tags": ["a", 1]}),
        (Review, GOOD | {"verdict": "burn"}),
        (Review, GOOD | {"scores": {"a": "x"}}),
        (Review, GOOD | {"okay": True}),
        (Review, [GOOD]),
        (int, 5),
        (int, True),
        (int, "5"),
        (bool, False),
        (str, None),
        (str | None, None),
        (list[int], [1, 2]),
        (Any, {"anything": 1}),
        (None, 5),
    ],
)
def test_a_payload_is_refused_if_and_only_if_it_could_not_be_read(type: Any, payload: object) -> None:
    body = msgspec.json.encode(payload)
    expected = msgspec.json.decode(expect("word", type), type=Expectation)
    fits = True
    try:
        msgspec.json.decode(body, type=Any if type is None else type)
    except msgspec.ValidationError:
        fits = False
    assert (expected.schema is None or misfit(body, expected.schema) is None) == fits


@pytest.mark.parametrize(
    "payload, reason",
    [
        ({"by": {"name": "Ada"}}, "the payload lacks the field 'ok'"),
        (GOOD | {"okay": 1}, "the payload has an unknown field 'okay'"),
        (GOOD | {"by": {}}, "the field 'by' of the payload lacks the field 'name'"),
        (GOOD | {"tags": ["a", 1]}, "item 1 of the field 'tags' of the payload is 1, and must be of type string"),
    ],
)
def test_the_reason_names_the_field(payload: object, reason: str) -> None:
    assert misfit(msgspec.json.encode(payload), msgspec.json.schema(Review)) == reason


def test_the_reason_shows_at_most_100_characters_of_a_value() -> None:
    reason = misfit(msgspec.json.encode({"ok": "x" * 500} | {"by": {"name": "Ada"}}), msgspec.json.schema(Review))

    assert reason == f"the field 'ok' of the payload is \"{'x' * 99}, and must be of type boolean"


def test_a_schema_is_recorded_up_to_exactly_16_000_bytes() -> None:
    assert SCHEMA_BYTES_MAX == 16_000
    empty = len(expect("", int))
    fits, too_large = ("s" * (SCHEMA_BYTES_MAX - empty + more) for more in (0, 1))

    assert msgspec.json.decode(expect(fits, int), type=Expectation).schema == {"type": "integer"}
    assert msgspec.json.decode(expect(too_large, int), type=Expectation).schema is None


def test_a_type_without_a_schema_or_with_a_huge_one_is_left_to_the_run() -> None:
    huge = msgspec.defstruct("Huge", [(f"a_rather_long_field_name_{n}", int) for n in range(1_000)])
    for type in (complex, huge):
        body = expect("word", type)
        assert len(body) < SCHEMA_BYTES_MAX
        assert msgspec.json.decode(body) == {"signal": "word", "schema": None}
