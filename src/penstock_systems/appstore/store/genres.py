"""The genre tree: ids and names. A kind of game counts as a game, a kind of magazine as a magazine."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import msgspec

import penstock as ps
from penstock_systems.appstore.store.decoding import Read, decoded, field
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.appstore.store.values import identity

APP_STORE = 36  # the root: all apps
GAMES, MAGAZINES = 6014, 6021
GENRES_MAX = 2_000
DEPTH_MAX = 8


def parent_of(genre_id: int) -> int | None:
    """The genre that an app of this one has as its primary genre."""
    if 7_001 <= genre_id <= 7_019:
        return GAMES
    return MAGAZINES if 13_001 <= genre_id <= 13_030 else None


def genres_url(base: str, *, country: str) -> str:
    asked = urlencode({"id": APP_STORE, "cc": country})
    return f"{base}/WebObjects/MZStoreServices.woa/ws/genres?{asked}"


class _Root(msgspec.Struct):
    store: Any = msgspec.field(default=None, name=str(APP_STORE))


def parse_genres(body: bytes) -> Read[dict[int, str]]:
    """The names of all genres below the root, by id."""
    below = field(decoded(body, _Root, "The genre tree").store, "subgenres")
    if not isinstance(below, dict):
        raise ps.Unparsable("The genre tree has no genres.", reason="bad_shape")
    names: dict[int, str] = {}
    skipped = 0
    level = list(below.values())
    for _ in range(DEPTH_MAX):
        deeper: list[Any] = []
        for genre in level:
            genre_id, name = identity(field(genre, "id")), cleaned(field(genre, "name"))
            if genre_id is None or name is None:
                skipped += 1
            elif len(names) < GENRES_MAX:
                names.setdefault(genre_id, name)
            children = field(genre, "subgenres")
            deeper += children.values() if isinstance(children, dict) else ()
        level = deeper
    return Read(names, skipped)
