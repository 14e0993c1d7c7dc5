"""Prices on pages: display text in any language, and what is bought inside an app."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from itertools import islice

from penstock_systems.appstore.store.facts import Purchase
from penstock_systems.appstore.store.text import cleaned
from penstock_systems.appstore.store.values import amount

PURCHASES_MAX = 100
PAIRS_MAX = 500  # that are looked at
PRICE_CHARACTERS_MAX = 50
_CODE = re.compile(r"\b(?:[A-Z]{3}|kr|Kč|zł|lei|Ft|R|Rp|RM|TL|DT)\b")


def purchase(name: object, shown: object) -> Purchase | None:
    title, text = cleaned(name), cleaned(shown, characters_max=PRICE_CHARACTERS_MAX)
    return Purchase(title, text or "", amount(text or "")) if title else None


def purchases_of(pairs: Iterable[tuple[object, object]]) -> tuple[tuple[Purchase, ...], int]:
    """What can be bought, each name and price once, and how many pairs could not be read. The rest of a long list goes."""
    read = [purchase(name, shown) for name, shown in islice(pairs, PAIRS_MAX)]
    kept = dict.fromkeys(one for one in read if one is not None)
    return tuple(kept)[:PURCHASES_MAX], read.count(None)


def is_price(text: object) -> bool:
    """Whether a text shows money: a short one with a number and a currency."""
    if not isinstance(text, str) or len(text) > PRICE_CHARACTERS_MAX or amount(text) is None:
        return False
    return any(unicodedata.category(letter) == "Sc" for letter in text) or bool(_CODE.search(text))


def offered(is_free: object, shown: object) -> tuple[float | None, str | None]:
    """The price of an app and the text for it. What is free says Get on its button, in any language."""
    if is_free is True:
        return 0.0, "Free"
    text = cleaned(shown, characters_max=PRICE_CHARACTERS_MAX)
    return (amount(text), text) if text and is_price(text) else (None, None)
