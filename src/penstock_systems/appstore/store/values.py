"""Numbers, ids and times from an answer that writes them as it likes: finite and in range, or not said."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite

ID_MAX = 2**63 - 1
STARS = (1.0, 5.0)
PRICE_MAX = 1e9  # a million euros is some ten thousand million in no currency of a store

_DIGITS = re.compile(r"[0-9]{1,19}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?(?:[eE][+-]?[0-9]{1,2})?")
# What a page's script makes of a date: Thu Oct 01 2026 06:49:33 GMT+0000, and often the zone's name after it.
_SCRIPT_DATE = re.compile(
    r"[A-Z][a-z]{2} ([A-Z][a-z]{2} [0-9]{2} [0-9]{4} [0-9:]{8}) GMT([+-][0-9]{4})(?: \(.{0,60}\))?"
)
_LINKED_ID = re.compile(r"/id([0-9]{1,19})(?![0-9])")
# Digits with what stores put between them: full stop, comma, apostrophes, blanks, and the Arabic marks.
_GROUPED = re.compile("[0-9](?:[.,'\u2019 \u00a0\u2009\u202f\u066b\u066c]?[0-9])*")
_SEPARATORS = re.compile("[^0-9]")
YEARS = (1970, 2199)
TIME_CHARACTERS = (10, 100)
ROUNDING = 1e-3  # a count that is this close to a whole number is one: pages show 2000234.9999999998


def whole(value: object, *, low: int = 0, high: int = ID_MAX) -> int | None:
    """A whole number, also where it is written as text, with a point and zeros, or with the rounding error of a float."""
    if isinstance(value, str) and _DIGITS.fullmatch(stripped := value.strip()):
        number = int(stripped)
    elif isinstance(value, float) and isfinite(value) and abs(value - round(value)) <= ROUNDING:
        number = round(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return None
    return number if low <= number <= high else None


def identity(value: object) -> int | None:
    """An id: positive, and small enough for a column of 64 bits."""
    return whole(value, low=1)


def linked_id(url: object) -> int | None:
    """The id at the end of a link such as https://apps.apple.com/us/app/x/id17?uo=2."""
    found = _LINKED_ID.findall(url) if isinstance(url, str) else []
    return identity(found[-1]) if found else None


def fraction(value: object, *, low: float, high: float) -> float | None:
    """A number in range, also where it is written as text."""
    if isinstance(value, str) and _NUMBER.fullmatch(stripped := value.strip()):
        value = float(stripped)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A whole number may be too long for a float: it is compared before it is turned into one.
    return float(value) if low <= value <= high else None


def stars(value: object) -> float | None:
    """An average of one to five stars. Nobody can give none, so zero means that nobody gave any."""
    return fraction(value, low=STARS[0], high=STARS[1])


def price(value: object) -> float | None:
    return fraction(value, low=0.0, high=PRICE_MAX)


def amount(text: str) -> float | None:
    """The number in a price as it is shown: $29.99, 29,99 €, NT$ 3,290, 1.299,00 €, ١٢٫٩٩."""
    found = _GROUPED.search(_ascii_digits(text))
    if found is None:
        return None
    shown = found[0]
    before, point, after = _last_separated(shown)
    # Three digits behind the last mark are thousands, unless nothing but a zero stands before them: 0.999.
    if point and (len(after) != 3 or before == "0"):
        shown = f"{_SEPARATORS.sub('', before)}.{after}"
    else:
        shown = _SEPARATORS.sub("", shown)
    return price(shown)


def count(text: str) -> int | None:
    """The first number in a text, whatever stands between its thousands: "3,624 Ratings"."""
    plain = _ascii_digits(text)
    found = _GROUPED.search(plain)
    if found is None or plain[found.end() : found.end() + 1].isalpha():
        return None  # 3.6K is no count but a hint at one
    return whole(_SEPARATORS.sub("", found[0]))


def moment(value: object) -> str | None:
    """A time as the tables keep it, in UTC: 2026-01-31 08:00:00. A day alone is its first moment.

    Read are ISO 8601 and the dates of JavaScript, which product pages show."""
    if not isinstance(value, str) or not TIME_CHARACTERS[0] <= len(value) <= TIME_CHARACTERS[1]:
        return None
    try:
        text = value.strip()
        script = _SCRIPT_DATE.fullmatch(text)
        if script:
            read = datetime.strptime(script[1] + script[2], "%b %d %Y %H:%M:%S%z")
        else:
            read = datetime.fromisoformat(text)
        # The first and the last year overflow when they are moved to UTC.
        at = read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at.isoformat(" ", "seconds")[:19] if YEARS[0] <= at.year <= YEARS[1] else None


def _ascii_digits(text: str) -> str:
    return text if text.isascii() else "".join(str(int(c)) if c.isdecimal() else c for c in text)


def _last_separated(shown: str) -> tuple[str, str, str]:
    marks = list(_SEPARATORS.finditer(shown))
    if not marks:
        return shown, "", ""
    last = marks[-1]
    return shown[: last.start()], last[0], shown[last.end() :]
