"""The table at the end of a page: seller, age, languages, purchases. Titles are in any language, so structure counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from penstock_systems.appstore.store.decoding import field, listed
from penstock_systems.appstore.store.facts import Purchase
from penstock_systems.appstore.store.prices import is_price, purchases_of
from penstock_systems.appstore.store.text import cleaned

ROWS_MAX = 50
ROW_CHARACTERS_MAX = 2_000  # the names of forty languages
LANGUAGES_MAX = 200
PURCHASES_TITLE = "In-App Purchases"

_AGE = re.compile(r"[0-9]{1,2}\+")
_COMMA = re.compile("[,、،;]")


@dataclass(frozen=True, slots=True)
class Rows:
    told: tuple[tuple[str, str], ...] = ()
    purchases: tuple[Purchase, ...] = ()
    skipped: int = 0

    def _titled(self, *titles: str) -> str | None:
        return next((text for title, text in self.told if title in titles), None)

    @property
    def seller(self) -> str | None:
        return self._titled("Seller", "Provider")

    @property
    def genre(self) -> str | None:
        return self._titled("Category")

    @property
    def age(self) -> str | None:
        """The one row that reads 4+ or 17+, in every language."""
        return next((found[0] for _, text in self.told if (found := _AGE.match(text))), None)

    @property
    def languages(self) -> tuple[str, ...]:
        names = _COMMA.split(self._titled("Languages") or "")[:LANGUAGES_MAX]
        return tuple(dict.fromkeys(filter(None, map(cleaned, names))))


def rows_of(items: list[Any]) -> Rows:
    told: list[tuple[str, str]] = []
    skipped = 0
    for item in items[:ROWS_MAX]:
        title = cleaned(field(item, "title"))
        if title is None:
            skipped += 1
        elif text := _text(item):
            told.append((title, text))
    bought, unread = purchases_of(_pairs(_purchases_row(items[:ROWS_MAX])))
    return Rows(tuple(told), bought, skipped + unread)


def _text(row: object) -> str | None:
    parts = [field(part, "text") for part in listed(field(row, "items")) + listed(field(row, "items_V3"))]
    texts = (cleaned(text, characters_max=ROW_CHARACTERS_MAX) for text in [*parts, field(row, "summary")])
    return next(filter(None, texts), None)


def _purchases_row(rows: list[Any]) -> object:
    """By its title in English; else by the pairs of text that only this row has; else by pairs that are all prices."""
    for row in rows:
        if cleaned(field(row, "title")) == PURCHASES_TITLE:
            return row
    for row in rows:
        if any(isinstance(field(part, "textPairs"), list) for part in listed(field(row, "items"))[:1]):
            return row
    for row in rows:
        pairs = _pairs(row)
        if pairs and all(is_price(shown) for _, shown in pairs):
            return row
    return None


def _pairs(row: object) -> list[tuple[object, object]]:
    """Names and prices in the newer form, or else in the older one."""
    newer = [
        (field(pair, "leadingText"), field(pair, "trailingText"))
        for pair in listed(field(row, "items_V3"))
        if isinstance(pair, dict) and "leadingText" in pair
    ]
    if newer:
        return newer
    older = [pair for part in listed(field(row, "items")) for pair in listed(field(part, "textPairs"))]
    return [(pair[0], pair[1]) if isinstance(pair, list) and len(pair) >= 2 else (None, None) for pair in older]
