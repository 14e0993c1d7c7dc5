"""Which keywords an app's own texts hold, where first and how often: what it says it is about."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from penstock_systems.appstore import keywords

MENTIONS_MAX = 30  # of an app
_WORD = re.compile(r"\w+")


class Mention(msgspec.Struct, frozen=True):
    keyword: str
    field: str
    count: int


def mentions(
    title: str | None, subtitle: str | None, description: str | None, letters: keywords.Letters = "any"
) -> list[Mention]:
    """Its title and subtitle say what to look for, then the first words of its description; all three are searched."""
    said = {
        "title": " ".join(keywords.words(title or "", letters)),
        "subtitle": " ".join(keywords.words(subtitle or "", letters)),
        "description": " ".join(_WORD.findall((description or "").casefold())),
    }
    looked_for = dict.fromkeys(
        [*keywords.of_app(title or "", subtitle, letters), *keywords.words(description or "", letters)]
    )
    return list(_found(said, looked_for))[:MENTIONS_MAX]


def _found(said: dict[str, str], looked_for: dict[str, None]) -> Iterator[Mention]:
    padded = {field: f" {text} " for field, text in said.items()}
    for keyword in looked_for:
        # A script without spaces has no word to stand alone in.
        sought = f" {keyword} " if keyword.isascii() else keyword
        counts = {field: text.count(sought) for field, text in padded.items()}
        if first := next((field for field, count in counts.items() if count), None):
            yield Mention(keyword, first, sum(counts.values()))
