"""The feeds wrap every value: {"label": ...} beside its attributes, once as an object and once as a list of them."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock_systems.appstore.store.decoding import decoded, field


class _Feed(msgspec.Struct):
    entry: msgspec.Raw = msgspec.Raw()


class _Root(msgspec.Struct):
    feed: _Feed


class _Entries(msgspec.Struct):
    entry: list[msgspec.Raw]


def entries_of(body: bytes, what: str) -> list[msgspec.Raw]:
    """The entries of a feed: none if there is no `entry`, one if it is an object, else as many as the list has."""
    entry = bytes(decoded(body, _Root, what).feed.entry).strip()
    if not entry or entry == b"null":
        return []
    if not entry.startswith(b"["):
        return [msgspec.Raw(entry)]
    return decoded(b'{"entry":%b}' % entry, _Entries, what).entry


def label(value: object) -> Any:
    return field(value, "label")


def attribute(value: object, name: str) -> Any:
    return field(value, "attributes", name)
