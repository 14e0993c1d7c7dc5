"""The store's answers in their true shapes, as files, and what every fact made of them has to keep to."""

from __future__ import annotations

import unicodedata
from math import isfinite
from pathlib import Path
from typing import Any

import msgspec

SHAPES = Path(__file__).parent / "shapes"
POCKET_LEDGER = 1_700_000_001
LETTERS_OF_CONTROL = ("Cc", "Cs")
TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def shape(name: str) -> bytes:
    return (SHAPES / name).read_bytes()


def page(data: bytes | None = None, *, tag: str = 'type="application/json" id="serialized-server-data"') -> bytes:
    """A product page around its data."""
    script = b"<script %b>%b</script>" % (tag.encode(), shape("page.json") if data is None else data)
    return b"<!DOCTYPE html><html><head><title>x</title></head><body><h1>x</h1>%b</body></html>" % script


def shoebox_page(box: bytes | None = None) -> bytes:
    """A product page as it was: its JSON is a string inside JSON."""
    boxes = {"a": "no json", "b": 7, "c": (shape("shoebox.json") if box is None else box).decode("utf-8", "replace")}
    return page(msgspec.json.encode(boxes), tag='id="shoebox-media-api-cache-apps" type="fastboot/shoebox"')


def check_facts(facts: Any) -> None:
    """Ids that a table can hold, numbers that are some, texts that harm nobody: in whatever is in it, however deep."""
    built = msgspec.to_builtins(facts)
    msgspec.json.encode(built)
    _check(built, "")


def _check(value: Any, name: str) -> None:
    if isinstance(value, dict):
        for key, one in value.items():
            _check(one, key if isinstance(key, str) else name)
    elif isinstance(value, list | tuple):
        for one in value:
            _check(one, name)
    elif isinstance(value, str):
        value.encode()  # half a character cannot be
        assert unicodedata.is_normalized("NFC", value)
        assert not TURNING & set(value)
        bad = [letter for letter in value if unicodedata.category(letter) in LETTERS_OF_CONTROL and letter != "\n"]
        assert not bad, (name, value)
        assert value == value.strip(), (name, value)
        assert len(value) <= 20_000
    elif isinstance(value, float):
        assert isfinite(value)
        assert value >= 0
    elif isinstance(value, int) and not isinstance(value, bool):
        assert 0 <= value < 2**63
        assert value or not name.endswith("_id")
