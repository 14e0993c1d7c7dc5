"""The text of a post on each network: as much as it takes, and always with the address of the article."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from penstock_systems.brand.rules.texts import cut, graphemes

Platform = Literal["mastodon", "bluesky", "x", "linkedin"]
PLATFORMS: tuple[Platform, ...] = ("mastodon", "bluesky", "x", "linkedin")

# The graphemes of a post, and what an address counts as where it is not its length.
LENGTHS: dict[Platform, tuple[int, int | None]] = {
    "mastodon": (500, 23),
    "bluesky": (300, None),
    "x": (280, 23),
    "linkedin": (3_000, None),
}
POINTS_MAX = 3
WIDE = 0x1100  # X counts a character from here on twice


def compose(platform: Platform, *, title: str, description: str, key_points: Sequence[str], url: str) -> str:
    """Return the text of a post: the title, the description and key points as far as they fit, and the address."""
    most, counted = LENGTHS[platform]
    room = most - (len(url) if counted is None else counted) - 2
    if platform == "x":
        title, description = _halved(title, room), ""
        return f"{title}\n\n{url}"
    text = cut(title, room)
    for part in (description, *(f"\u2022 {point}" for point in key_points[:POINTS_MAX])):
        longer = f"{text}\n\n{part}" if part == description else f"{text}\n{part}"
        if not part or len(graphemes(longer)) > room:
            break
        text = longer
    return f"{text}\n\n{url}"


def _halved(text: str, room: int) -> str:
    """Cut a text for X, where most characters beyond the Latin ones count twice."""
    weight = sum(2 if ord(character) >= WIDE else 1 for character in text)
    while weight > room:
        text = cut(text, max(1, min(len(graphemes(text)) - 1, len(text) * room // weight)))
        weight = sum(2 if ord(character) >= WIDE else 1 for character in text)
    return text


def facets(text: str, url: str) -> list[dict[str, Any]]:
    """Return Bluesky's mark of the address in a text. Its offsets are bytes of UTF-8."""
    at = text.rfind(url)
    if at < 0:
        return []
    start = len(text[:at].encode())
    link = {"$type": "app.bsky.richtext.facet#link", "uri": url}
    return [{"index": {"byteStart": start, "byteEnd": start + len(url.encode())}, "features": [link]}]
