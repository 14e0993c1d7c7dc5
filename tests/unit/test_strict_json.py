"""JSON from outside gets one verdict with a position, however hostile it is, and the quick way agrees with the slow one."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.strict_json import BadJson, _read, parse

# What is wrong, the byte at which it is, and what is said about it.
REFUSED: list[tuple[bytes, int, str]] = [
    (b"", 0, "it is empty"),
    (b"  \n ", 4, "it is empty"),
    (b"{", 1, "a key in double quotes is missing"),
    (b"[1, 2", 5, "a comma or ] is missing"),
    (b"[1,]", 3, "a value is missing"),
    (b'{"a": 1,}', 8, "a key in double quotes is missing"),
    (b"{a: 1}", 1, "a key in double quotes is missing"),
    (b'{"a" 1}', 5, "a colon is missing"),
    (b"[1 2]", 3, "a comma or ] is missing"),
    (b"1 2", 2, "there is text after the value"),
    (b"tru", 0, "a value is missing"),
    (b"[nul]", 1, "a value is missing"),
    (b"01", 1, "there is text after the value"),
    (b"1.", 1, "there is text after the value"),
    (b".5", 0, "a value is missing"),
    (b"+1", 0, "a value is missing"),
    (b"-", 0, "a value is missing"),
    (b"'a'", 0, "a value is missing"),
    (b'"abc', 0, "the string that begins here does not end"),
    (b'"a\nb"', 2, "a string contains a control character; escape it"),
    (b'"\\x"', 1, "there is no such escape"),
    (b'"\\u12"', 2, "\\u needs four hexadecimal digits"),
    (b"// no\n1", 0, "a value is missing"),
    (b"\xef\xbb\xbf1", 0, "it begins with a byte order mark; remove it"),
    (b"NaN", 0, "NaN is not a number in JSON"),
    (b"[Infinity]", 1, "Infinity is not a number in JSON"),
    (b"[-Infinity]", 1, "-Infinity is not a number in JSON"),
    (b"[1e999]", 1, "the number is too large to be stored"),
    (b"-1e999", 0, "the number is too large to be stored"),
    (b"1" * 400 + b".5", 0, "the number is too large to be stored"),
    (b"9" * 5_000, 0, "an integer of 5000 digits does not fit into 64 bits; send it as a string"),
    (b"[18446744073709551616]", 1, "an integer of 20 digits does not fit into 64 bits; send it as a string"),
    (b"-9223372036854775809", 0, "an integer of 19 digits does not fit into 64 bits; send it as a string"),
    (b'{"a": 1, "a": 2}', 9, 'the key "a" is repeated'),
    (b'{"a": {"b": 1, "\\u0062": 2}}', 15, 'the key "b" is repeated'),
    (b'{"a:": 1, "a\\u003a": 2}', 10, 'the key "a:" is repeated'),
    (b'["\\ud800"]', 1, "the string contains a lone surrogate, which is half a character"),
    (b'["\\udc00x"]', 1, "the string contains a lone surrogate, which is half a character"),
    (b'{"\\ud800": 1}', 1, "the string contains a lone surrogate, which is half a character"),
    (b'"\xed\xa0\x80"', 1, "the byte here is not UTF-8"),
    (b'"ab\\u0000"', 3, "the character NUL (\\u0000) cannot be stored; remove it, or send bytes"),
    (b'"a\x00b"', 2, "a string contains a control character; escape it"),
    (b'"\xff"', 1, "the byte here is not UTF-8"),
    (b'["\xc3"]', 2, "the byte here is not UTF-8"),
    (b"[" * 65 + b"]" * 65, 64, "it nests deeper than 64 levels"),
    (b"[" * 100_000, 64, "it nests deeper than 64 levels"),
    (b"[" * 100_000 + b"]" * 100_000, 64, "it nests deeper than 64 levels"),
    (b'{"a":' * 100_000, 320, "it nests deeper than 64 levels"),
    (b'{"' + b"k" * 120 + b'": 1, "' + b"k" * 120 + b'": 2}', 128, f'the key "{"k" * 100}..." is repeated'),
]

TAKEN: list[tuple[bytes, object]] = [
    (b"null", None),
    (b' {"a": [true, false, null, 1, -2, 1.5, 1e5, "x"]} ', {"a": [True, False, None, 1, -2, 1.5, 100_000.0, "x"]}),
    (b"18446744073709551615", 2**64 - 1),
    (b"-9223372036854775808", -(2**63)),
    (b"-0", 0),
    (b"1e-999", 0.0),
    (b"0." + b"1" * 5_000, 0.1111111111111111),
    (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
    (b'"a\\\\u0000"', "a\\u0000"),
    (b'{"a": {"a": {"a": 1}}, "b": {"a": 1}}', {"a": {"a": {"a": 1}}, "b": {"a": 1}}),
    (b'{"a:b": "c:d", "e": "\\":"}', {"a:b": "c:d", "e": '":'}),
    (b'["' + b"[" * 200 + b'"]', ["[" * 200]),
    (b'["\\\\", "' + b"[" * 200 + b'\\""]', ["\\", "[" * 200 + '"']),
    (b'"12345678901234567890123"', "12345678901234567890123"),
]


@pytest.mark.fault("F37")
@pytest.mark.parametrize("text, byte, reason", REFUSED, ids=lambda value: repr(value)[:40])
def test_what_cannot_be_kept_is_refused_at_its_position(text: bytes, byte: int, reason: str) -> None:
    with pytest.raises(BadJson) as caught:
        parse(text)

    assert caught.value.facts["byte"] == byte
    assert f"at byte {byte} (line " in str(caught.value)
    assert caught.value.facts["reason"] == reason
    assert str(caught.value).endswith(f": {reason}.")


@pytest.mark.parametrize("text, value", TAKEN, ids=lambda value: repr(value)[:40])
def test_what_is_fine_is_read_the_same_by_both_readers(text: bytes, value: object) -> None:
    assert parse(text) == value
    assert _read(text, 64) == value


def test_64_levels_are_taken_and_one_more_is_not() -> None:
    assert parse(b"[" * 64 + b"]" * 64)
    assert parse(b'{"a":' * 63 + b"{}" + b"}" * 63)
    assert parse(b"[[1], [[2]]]", depth_max=3) == [[1], [[2]]]
    with pytest.raises(BadJson, match="deeper than 2 levels"):
        parse(b"[[1], [[2]]]", depth_max=2)


def test_many_shallow_containers_are_not_deep() -> None:
    many = [{"a": [str(number)]} for number in range(1_000)]

    assert parse(msgspec.json.encode(many)) == many


def test_a_position_counts_bytes_from_0_and_lines_and_columns_from_1() -> None:
    with pytest.raises(BadJson) as caught:
        parse('["é",\n "ü" x]'.encode())

    assert (caught.value.facts["byte"], caught.value.facts["line"], caught.value.facts["column"]) == (13, 2, 6)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8), inner, max_size=4
    ),
    max_leaves=20,
)  # fmt: skip


@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_whatever_python_writes_comes_back(value: object, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()

    assert parse(text) == value
    assert _read(text, 64) == value


@given(st.text('{}[]",:\\u0a1eE.-+ntf\n é\0', max_size=24) | st.binary(max_size=12))
def test_both_readers_agree_on_any_text(given_text: str | bytes) -> None:
    text = given_text if isinstance(given_text, bytes) else given_text.encode()

    assert verdict(parse, text) == verdict(lambda each: _read(each, 64), text)


def verdict(reader: object, text: bytes) -> object:
    assert callable(reader)
    try:
        return repr(reader(text))
    except BadJson as error:
        return error.facts


@pytest.mark.fault("F37")
def test_hostile_text_takes_time_in_proportion_to_its_length() -> None:
    """A reader that went over the text again for each part of it would not come to an end here."""
    size = 1_000_000
    for text in (
        b'"' + b"\\" * size,
        b"[" * size,
        b"1" * size,
        b'{"a":' * size,
        b"1e" + b"9" * size,
        b'"' + b"\\u00e9" * size,
    ):
        with pytest.raises(BadJson):
            parse(text)
