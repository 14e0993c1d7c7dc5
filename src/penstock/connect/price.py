"""Reads an amount and a currency out of a price as people write it: `1.250,00 €`, `CHF 1'450.–`, `8 450 kr/mån`."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

TEXT_MAX = 300  # characters that are looked at
AMOUNT_MAX = 1e12

_GROUP = r"[ \u00a0\u202f\u2009'’٬.,]"
_AMOUNT = re.compile(rf"\d+(?:{_GROUP}\d+)*(?P<many>\s?[万萬])?")
_INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
# A sign or word of a currency, the longer ones first: `R$` is no `$`, and `kr` stands alone or behind an amount.
CURRENCIES = {
    "USD": ("US$", "USD", "$"),
    "CAD": ("CA$", "C$", "$ CA", "CAD"),
    "AUD": ("AU$", "A$", "AUD"),
    "NZD": ("NZ$", "NZD"),
    "HKD": ("HK$", "HKD"),
    "TWD": ("NT$", "TWD"),
    "SGD": ("S$", "SGD"),
    "MXN": ("MX$", "MXN"),
    "BRL": ("R$", "BRL"),
    "EUR": ("€", "EUR", "EURO", "EUROS"),
    "GBP": ("£", "GBP"),
    "CHF": ("CHF", "SFR", "FR."),
    "ILS": ("₪", "NIS", "ILS", 'ש"ח', "ש״ח"),
    "PLN": ("ZŁ", "PLN", "ZŁOTYCH", "ZLOTYCH"),
    "CZK": ("KČ", "CZK"),
    "HUF": ("FT", "HUF"),
    "RON": ("LEI", "RON", "LEU"),
    "BGN": ("ЛВ", "BGN"),
    "UAH": ("ГРН", "₴", "UAH"),
    "RUB": ("₽", "РУБ", "RUB"),
    "KZT": ("₸", "ТГ", "KZT"),
    "TRY": ("₺", "TL", "TRY"),
    "SEK": ("SEK", "KR"),
    "NOK": ("NOK",),
    "DKK": ("DKK",),
    "JPY": ("¥", "円", "JPY"),
    "CNY": ("￥", "元", "CNY", "RMB"),
    "KRW": ("₩", "원", "KRW"),
    "INR": ("₹", "RS.", "INR"),
    "THB": ("฿", "บาท", "THB"),
    "VND": ("₫", "Đ", "VND"),
    "IDR": ("RP", "IDR"),
    "MYR": ("RM", "MYR"),
    "PHP": ("₱", "PHP"),
    "ZAR": ("ZAR", "R"),
    "AED": ("AED", "درهم"),
    "EGP": ("ج.م", "EGP"),
    "SAR": ("SAR",),
    "NGN": ("₦", "NGN"),
    "KES": ("KSH", "KES"),
    "ARS": ("ARS",),
    "CLP": ("CLP",),
    "COP": ("COP",),
    "PEN": ("S/.", "S/", "PEN"),
}
_CODES = {sign: code for code, signs in CURRENCIES.items() for sign in signs}


def _pattern(sign: str) -> str:
    """A word stands alone, or beside digits; a code such as SEK comes before a mere sign such as `$`."""
    before = r"(?<![^\W\d_])" if sign[0].isalpha() else ""
    after = r"(?![^\W\d_])" if sign[-1].isalpha() else ""
    return f"{before}{re.escape(sign)}{after}"


# `CLP $ 520.000` names the currency twice; the code of three letters says which dollar it is.
_CODE = re.compile("|".join(_pattern(code) for code in CURRENCIES))
_SIGN = re.compile("|".join(_pattern(sign) for sign in sorted(_CODES, key=len, reverse=True)))


class Price(NamedTuple):
    """An amount, None where no amount is written, and the code of its currency if that is known."""

    amount: float | None
    currency: str | None


def parse_price(text: str) -> Price:
    """Return the first amount of a text and its currency. `$` stands for US dollars, `kr` for Swedish kronor."""
    plain = _INVISIBLE.sub("", text[:TEXT_MAX])
    digits = "".join(str(unicodedata.digit(c)) if c.isdigit() and not c.isascii() else c for c in plain)
    found = _AMOUNT.search(digits)
    if found is None:
        return Price(None, None)
    amount = _amount(found[0].rstrip("万萬 "))
    if found["many"]:
        amount *= 10_000
    return Price(amount if amount <= AMOUNT_MAX else None, _currency(digits.upper()))


def _currency(text: str) -> str | None:
    found = _CODE.search(text) or _SIGN.search(text)
    return None if found is None else _CODES[found[0]]


def _amount(text: str) -> float:
    """A dot or comma is decimal if it comes once, last, and not before exactly three digits."""
    marks = [c for c in text if not c.isdigit()]
    if not marks:
        return float(text)
    last = marks[-1]
    tail = len(text) - text.rindex(last) - 1
    is_decimal = last in ".," and marks.count(last) == 1 and tail != 3
    if not is_decimal:
        return float(re.sub(r"\D", "", text))
    whole, _, fraction = text.rpartition(last)
    digits = re.sub(r"\D", "", whole)
    return float(f"{digits or 0}.{fraction}")
