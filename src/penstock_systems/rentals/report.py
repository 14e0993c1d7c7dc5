"""The report: homes on a map, prices by area and age, price cuts, and the health of the sources, as one HTML file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from importlib.resources import files
from math import cos, radians
from statistics import median, quantiles
from typing import Any

import jinja2

import penstock as ps
from penstock_systems.rentals.app import app, db
from penstock_systems.rentals.homes import COLUMNS
from penstock_systems.rentals.reading import source_shown

ACTIVE = COLUMNS + "where id > :after and status <> 'gone' order by id limit :size"
CUTS = """
select n.home_id, n.old, n.new, n.created_at, l.title, l.url, l.currency, l.source
from notices n
join listings l on l.id = n.listing_id
where n.reason = 'cheaper'
order by n.created_at desc, n.id
limit 500
"""
MAP_WIDTH = 640.0
HEIGHT_LEAST, HEIGHT_MOST = 300.0, 620.0
DOTS_MAX = 4_000
AGES = (("under a day", 1), ("1 to 3 days", 3), ("3 to 7 days", 7), ("1 to 4 weeks", 28), ("older", 100_000))
LEVELS = 5  # of price per square metre, as colours
CUTS_SHOWN, AREAS_SHOWN = 12, 16
LABELLED_LEAST = 5  # homes of an area
LETTER_WIDTH, LABEL_HEIGHT = 14, 26  # of a label on a phone, in the units of the map


async def render(
    figures: Mapping[str, Any] | None = None,
    truth: Mapping[str, Any] | None = None,
    alerts: Sequence[tuple[float, ps.Alert]] = (),
) -> str:
    """Return the page. A demo adds its figures, what is true, and the alerts with their hours."""
    now = await db.now()
    rows = [row async for page in db.pages(ACTIVE, key="id", after="") for row in page]
    homes = list({row.home_id or row.id: row for row in rows}.values())
    sources = [source_shown(row) | await _sums(row.name) for row in await app.sources.list()]
    page = {
        "now": now[:16],
        "homes": len(homes),
        "listings": len(rows),
        "sources": sources,
        "currency": (currency := usual_currency(homes)),
        "map": draw_map(homes, currency),
        "areas": areas_of(homes, currency),
        "ages": ages_of(homes, now),
        "cuts": cuts_of(await db.rows(CUTS)),
        "figures": figures or {},
        "truth": truth or {},
        "alerts": [{"hour": round(hour, 1), "text": alert.subject} for hour, alert in alerts],
    }
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string((files(__package__) / "report.html.jinja").read_text("utf-8"))
    return template.render(page)


async def _sums(name: str) -> dict[str, int]:
    runs = await app.sources.runs(name, 1_000)
    return {
        "runs": len(runs),
        "new": sum(row.inserted for row in runs),
        "changed": sum(row.changed for row in runs),
        "gone": sum(row.gone for row in runs),
        "bad": sum(row.verdict not in ("ok", "empty") for row in runs),
    }


def usual_currency(homes: Sequence[Any]) -> str | None:
    """Return the currency of most rents: those of others are not compared with them."""
    found = Counter(row.currency for row in homes if row.price_base).most_common(1)
    return found[0][0] if found else None


def per_meter(row: Any, currency: str | None) -> float | None:
    """Return the rent without fees for a square metre, None where it is unknown or in another currency."""
    known = row.price_base and row.area_m2 and row.currency == currency
    return row.price_base / row.area_m2 if known else None


def draw_map(homes: Sequence[Any], currency: str | None) -> dict[str, Any] | None:
    """Return dots in a box, coloured by the price of a square metre; None without coordinates."""
    placed = [row for row in homes if row.lat is not None][:DOTS_MAX]
    if len(placed) < 2:
        return None
    for axis in ("lat", "lon"):  # a misread place far away would leave one dot for all others
        ordered = sorted(getattr(row, axis) for row in placed)
        low, high = ordered[len(ordered) // 50], ordered[-1 - len(ordered) // 50]
        margin = max(high - low, 0.01)
        placed = [row for row in placed if low - margin <= getattr(row, axis) <= high + margin]
    south, north = min(row.lat for row in placed), max(row.lat for row in placed)
    west, east = min(row.lon for row in placed), max(row.lon for row in placed)
    narrow = cos(radians((south + north) / 2))
    scale = MAP_WIDTH / max((east - west) * narrow, 1e-6)
    height = min(HEIGHT_MOST, max(HEIGHT_LEAST, (north - south) * scale))
    prices = [price for row in placed if (price := per_meter(row, currency)) is not None]
    bounds = quantiles(prices, n=LEVELS) if len(prices) >= LEVELS else []

    def level(row: Any) -> int:
        price = per_meter(row, currency)
        return -1 if price is None or not bounds else sum(price > bound for bound in bounds)

    dots = [
        {
            "x": round(8 + (row.lon - west) * narrow * scale * (MAP_WIDTH - 16) / MAP_WIDTH, 1),
            "y": round(8 + (north - row.lat) / max(north - south, 1e-6) * (height - 16), 1),
            "level": level(row),
        }
        for row in placed
    ]
    labels = _labels(placed, west, north, narrow * scale * (MAP_WIDTH - 16) / MAP_WIDTH, height, north - south)
    edges = [round(each, 1) for each in bounds]
    return {"width": MAP_WIDTH, "height": round(height), "dots": dots, "labels": labels, "bounds": edges}


def _labels(
    placed: Sequence[Any], west: float, north: float, across: float, height: float, span: float
) -> list[dict[str, Any]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for row in placed:
        if row.neighborhood:
            groups[row.neighborhood].append(row)
    largest = sorted(groups.items(), key=lambda each: -len(each[1]))[:AREAS_SHOWN]
    labels: list[dict[str, Any]] = []
    for name, rows in largest:
        if len(rows) >= LABELLED_LEAST:
            x = round(min(MAP_WIDTH - 56, max(56, 8 + (median(row.lon for row in rows) - west) * across)))
            y = round(8 + (north - median(row.lat for row in rows)) / max(span, 1e-6) * (height - 16))
            labels.append({"text": name, "x": x, "y": _free(labels, name, x, y, height)})
    return labels


def _free(labels: Sequence[Mapping[str, Any]], name: str, x: int, y: int, height: float) -> int:
    """Return the height nearest to `y` at which a label covers no other, also in the larger letters of a phone."""
    near = [
        each["y"] for each in labels if abs(each["x"] - x) < LETTER_WIDTH * (len(name) + len(str(each["text"]))) / 2
    ]
    moves = sorted(range(-3 * LABEL_HEIGHT, 3 * LABEL_HEIGHT + 1, 4), key=abs)
    fitting = (y + move for move in moves if LABEL_HEIGHT <= y + move <= height - 8)
    return next((each for each in fitting if all(abs(each - other) >= LABEL_HEIGHT for other in near)), y)


def areas_of(homes: Sequence[Any], currency: str | None) -> list[dict[str, Any]]:
    groups: dict[str, list[float]] = defaultdict(list)
    for row in homes:
        price = per_meter(row, currency)
        if price is not None and row.neighborhood:
            groups[row.neighborhood].append(price)
    ordered = sorted(((median(prices), name, len(prices)) for name, prices in groups.items()), reverse=True)
    return [
        {"name": name, "price": round(price, 1), "homes": count, "share": round(100 * price / ordered[0][0])}
        for price, name, count in ordered[:AREAS_SHOWN]
    ]


def ages_of(homes: Sequence[Any], now: str) -> list[dict[str, Any]]:
    """Return how long homes have been known."""
    today = datetime.fromisoformat(now)
    counts: Counter[str] = Counter()
    for row in homes:
        days = (today - datetime.fromisoformat(row.first_seen_at)).total_seconds() / 86_400
        counts[next(name for name, most in AGES if days < most)] += 1
    most_homes = max(counts.values(), default=1)
    return [{"name": name, "homes": counts[name], "share": round(100 * counts[name] / most_homes)} for name, _ in AGES]


def cuts_of(rows: Sequence[Any]) -> list[dict[str, Any]]:
    """Return the largest cuts, each home once."""
    best: dict[str, Any] = {}
    for row in rows:
        if row.old and row.new is not None and row.home_id not in best:
            best[row.home_id] = row
    ordered = sorted(best.values(), key=lambda row: row.new / row.old)[:CUTS_SHOWN]
    return [
        {
            "title": row.title,
            "source": row.source,
            "url": row.url if str(row.url).startswith(("https://", "http://")) else "",
            "old": f"{row.old:,.0f}",
            "new": f"{row.new:,.0f} {row.currency or ''}".strip(),
            "share": f"{row.new / row.old - 1:+.0%}".replace("-", "−"),
            "at": row.created_at[:16],
        }
        for row in ordered
    ]
