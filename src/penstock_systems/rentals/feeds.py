"""Listings as GeoJSON, CSV, RSS 2.0 and iCalendar."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any
from xml.sax.saxutils import escape

from penstock_systems.rentals.searches import price_of

COLUMNS = (
    "id",
    "source",
    "title",
    "price",
    "currency",
    "rooms",
    "area_m2",
    "neighborhood",
    "street",
    "lat",
    "lon",
    "url",
)
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # a cell that begins so is run by a spreadsheet
_CONTROLS = {code: " " for code in range(32) if code not in (9, 10, 13)} | {0xFFFE: "", 0xFFFF: ""}


def geojson(rows: Iterable[Any]) -> str:
    """Return the listings that have coordinates as a FeatureCollection."""
    features = [
        {
            "type": "Feature",
            "id": row.id,
            "geometry": {"type": "Point", "coordinates": [row.lon, row.lat]},
            "properties": {name: _value(row, name) for name in COLUMNS if name not in ("lat", "lon")},
        }
        for row in rows
        if row.lat is not None
    ]
    return json.dumps({"type": "FeatureCollection", "features": features}, ensure_ascii=False)


def csv_text(rows: Iterable[Any]) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(_value(row, name)) for name in COLUMNS])
    return out.getvalue()


def rss(name: str, rows: Sequence[Any]) -> str:
    items = "".join(
        f'<item><guid isPermaLink="false">{_text(row.id)}</guid><title>{_text(_title(row))}</title>'
        f"<link>{_text(row.url)}</link><pubDate>{_date(row.first_seen_at)}</pubDate></item>"
        for row in rows
    )
    about = f"<title>{_text(name)}</title><link>https://localhost/</link><description>Rental listings</description>"
    return f'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel>{about}{items}</channel></rss>'


def ics(name: str, rows: Sequence[Any], now: str) -> str:
    """Return the deadlines of listings that have one, as events of a day."""
    stamp = now.replace("-", "").replace(":", "").replace(" ", "T") + "Z"
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Penstock//rentals//EN", f"X-WR-CALNAME:{_escaped(name)}"]
    for row in rows:
        if not row.deadline:
            continue
        day = row.deadline[:10].replace("-", "")
        event = [f"UID:{_escaped(row.id)}@penstock", f"DTSTAMP:{stamp}", f"DTSTART;VALUE=DATE:{day}"]
        event += [f"SUMMARY:{_escaped(f'Apply by today: {_title(row)}')}"]
        event += [f"DESCRIPTION:{_escaped(row.url)}"] if row.url else []
        lines += ["BEGIN:VEVENT", *event, "END:VEVENT"]
    lines.append("END:VCALENDAR")
    return "".join(f"{_folded(line)}\r\n" for line in lines)


def _value(row: Any, name: str) -> Any:
    return price_of(row) if name == "price" else getattr(row, name)


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULAS) else value


def _title(row: Any) -> str:
    price = price_of(row)
    money = f"{price:,.0f} {row.currency or ''}".strip() if price is not None else "price not given"
    return f"{row.title}, {money}"


def _text(value: str) -> str:
    return escape(str(value).translate(_CONTROLS), {'"': "&quot;"})


def _date(text: str) -> str:
    return format_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


def _escaped(text: str) -> str:
    plain = str(text).translate(_CONTROLS).replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return " ".join(plain.split())


def _folded(line: str) -> str:
    """Fold at 75 octets, never inside a character."""
    parts: list[str] = []
    part = ""
    for character in line:
        if len((part + character).encode()) > (75 if not parts else 74):
            parts.append(part)
            part = ""
        part += character
    return "\r\n ".join([*parts, part])
