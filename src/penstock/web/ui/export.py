"""Rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from penstock.pages import Section
from penstock.views.view import Column, Row
from penstock.web.ui.page import Facts


def listed_rows(facts: Facts, name: str) -> Sequence[Row]:
    """Return the rows of a page's list: under its name, or the first that a section has."""
    sections: Sequence[Section] = facts.get("sections", ())
    rows: Sequence[Row] = facts[name] if name in facts else next((each.rows for each in sections if each.rows), [])
    return rows


def as_csv(columns: Sequence[Column], rows: Sequence[Row]) -> str:
    """Return rows as CSV. A value that a spreadsheet would run as a formula is made text."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([column.heading for column in columns])
    for row in rows:
        values = [row.get(column.name) if column.of is None else column.of(row) for column in columns]
        writer.writerow([_plain(value) for value in values])
    return out.getvalue()


def _plain(value: object) -> object:
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return f"'{value}"
    return "" if value is None else value
