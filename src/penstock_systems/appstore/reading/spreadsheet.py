"""Rows as CSV after RFC 4180, in which no cell is a formula and no control character is left."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any
from unicodedata import category, normalize

import msgspec

from penstock_systems.appstore.reading.shown import calm

# A spreadsheet takes a cell that begins with one of these for a formula, and would run it.
FORMULA_STARTS = ("=", "+", "-", "@")


def csv_text(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> str:
    """A header and a line for each row, whether there are rows or not."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\r\n")
    writer.writerow(columns)
    writer.writerows([cell(row.get(name)) for name in columns] for row in rows)
    return written.getvalue()


def cell(value: Any) -> str:
    """A number stays a number; text that would be a formula gets an apostrophe in front; lists are JSON."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str():
            text = calm(value)
        case _:
            text = calm(msgspec.json.encode(value).decode())
    return f"'{text}" if _begins(text).startswith(FORMULA_STARTS) else text


def _begins(text: str) -> str:
    """Return the first visible character in its plain form: a spreadsheet skips what is invisible, and reads ＝ as =."""
    seen = (each for each in text if category(each) not in ("Cf", "Cc", "Zs", "Mn"))
    return normalize("NFKC", next(seen, ""))
