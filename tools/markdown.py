"""Reads Markdown: the headings of a page with the anchors that GitHub gives them, its links, and its fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token

NOT_IN_AN_ANCHOR = re.compile(r"[^\w\- ]")
PARSER = MarkdownIt("commonmark").enable("table")


def anchors_of(text: str) -> list[str]:
    """Return the anchor of each heading, in order."""
    anchors: list[str] = []
    seen: dict[str, int] = {}
    for opening, inline in pairwise(PARSER.parse(text)):
        if opening.type == "heading_open":
            heading = "".join(part.content for part in inline.children or [] if part.type in ("text", "code_inline"))
            plain = NOT_IN_AN_ANCHOR.sub("", heading.lower()).replace(" ", "-")
            times = seen[plain] = seen.get(plain, -1) + 1
            anchors.append(f"{plain}-{times}" if times else plain)
    return anchors


def links_of(text: str) -> list[str]:
    """Return the targets of links and pictures as they are written; code holds no links."""
    found = [(token.attrGet("href"), token.attrGet("src")) for token in _flat(PARSER.parse(text))]
    return [str(href or src) for href, src in found if href or src]


def blocks_of(text: str) -> list[tuple[str, str, str]]:
    """Return the fenced blocks: their language, the rest of the fence's line, and their text."""
    found = [token for token in PARSER.parse(text) if token.type == "fence"]
    return [(*token.info.strip().partition(" ")[::2], token.content) for token in found]


def _flat(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from token.children or ()
