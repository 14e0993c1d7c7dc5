"""Text that strangers wrote, made fit to be looked at: it stays readable, and moves or turns nothing around it."""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any

NAME_MOST = 60  # characters of a title in a row of a table
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
BYTE_ORDER = "\ufeff"
TURNS = frozenset(f"{BYTE_ORDER}\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def calm(text: object, most: int | None = None) -> str:
    """On one line, without control characters and without marks that turn the direction of what follows."""
    return cut(" ".join(harmless(str(text)).split()), most)


def harmless(text: str) -> str:
    """The same, with its spaces as they are. What breaks a line is a space."""
    return "".join(_kept(each) for each in text)


def cut(text: str, most: int | None) -> str:
    """At most so many characters, and a sign that there were more. None of them is torn from its marks."""
    if most is None or len(text) <= most:
        return text
    end = most - 1
    while end > 1 and (unicodedata.combining(text[end]) or text[end] in "\u200d\ufe0f" or text[end - 1] == "\u200d"):
        end -= 1
    return text[:end].rstrip() + "…"


def _kept(each: str) -> str:
    kind = unicodedata.category(each)
    if kind in ("Cc", "Zl", "Zp"):
        return " "
    return "" if each in TURNS or kind == "Cs" or _is_no_character(ord(each)) else each


def _is_no_character(code: int) -> bool:
    """What Unicode promises never to use, and no page may hold."""
    return code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF


def number(value: Any, digits: int = 0) -> str:
    """With separators, a dash where there is none. What rounds to nothing is 0, never -0."""
    if value is None:
        return "-"
    return f"{round(float(value), digits) + 0.0:,.{digits}f}"


def signed(value: Any, digits: int = 1) -> str:
    """A change: +1.5, -2.0, 0.0."""
    shown = number(value, digits)
    return f"+{shown}" if value is not None and round(float(value), digits) > 0 else shown


def day_shown(at: datetime) -> str:
    return f"{at.day} {MONTHS[at.month - 1]}"


def moment_shown(at: str | None) -> str:
    """6 Jan 2026, 18:00"""
    if at is None:
        return "-"
    moment = datetime.fromisoformat(at)
    return f"{day_shown(moment)} {moment.year}, {moment:%H:%M}"


def chart_shown(collection: str) -> str:
    """`topfreeapplications` is the store's word for the top free ones."""
    return collection.removesuffix("applications").replace("top", "top ", 1)
