"""What the API, the commands and the report read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from penstock_systems.rentals.app import app, db
from penstock_systems.rentals.homes import COLUMNS, OF_HOME
from penstock_systems.rentals.noticing import KINDS, lowest
from penstock_systems.rentals.searches import Filter, matches

SHOWN_ONLY = "status <> 'gone' and not exists (select 1 from homes h where h.id = home_id and h.hidden = 1) "
ACTIVE = COLUMNS + f"where id > :after and {SHOWN_ONLY}order by id limit :size"
LATEST = COLUMNS + (
    f"where first_seen_at >= :since and first_seen_at <= :seen and {SHOWN_ONLY}"
    "and (first_seen_at < :seen or id > :id) order by first_seen_at desc, id limit :size"
)
PAGE = 2_000
MARKED = """
select id, status, first_seen_at, changed_at, starred, hidden
from homes
where (starred = 1 and :starred = 1 or hidden = 1 and :hidden = 1)
order by changed_at desc, id
limit :most
"""
MEET = """
insert into search_homes (search_id, home_id, low_base, low_total, is_silent, matched_at)
values (:search, :home, :low_base, :low_total, 1, :now)
on conflict (search_id, home_id) do nothing
"""
HOME = "select id, status, first_seen_at, changed_at, starred, hidden from homes where id = :id"
LINKS = "select listing_id, score, why from home_listings where home_id = :id order by joined_at limit 100"
VERSIONS = """
select seen_at, kind, price_base, price_total
from listing_versions
where listing_id = :id
order by seen_at
limit 200
"""
SHOWN = (
    *("id", "source", "url", "title", "price_base", "price_total", "currency", "rooms", "area_m2", "floor", "city"),
    *("neighborhood", "street", "house_number", "lat", "lon", "deal", "broker", "deadline", "status", "first_seen_at"),
    "home_id",
)


def listing_shown(row: Any) -> dict[str, Any]:
    return {name: getattr(row, name) for name in SHOWN}


def source_shown(row: Any) -> dict[str, Any]:
    memory = json.loads(row.memory or "{}")
    counts = memory.get("counts", [])
    shown = {name: getattr(row, name) for name in row.columns if name not in ("memory", "id")}
    return shown | {"usual": sorted(counts)[len(counts) // 2] if counts else None, "alerts": memory.get("alerts", [])}


async def find_listings(wanted: Filter, since: str | None, most: int) -> Sequence[Any]:
    """Return the latest active listings that a filter wants, without those of hidden homes."""
    found: list[Any] = []
    last: Mapping[str, str] = {"seen": "9999", "id": ""}
    while len(found) < most:
        rows = await db.rows(LATEST, last, since=since or "", size=PAGE)
        found += [row for row in rows if matches(wanted, row)]
        if len(rows) < PAGE:
            break
        last = {"seen": rows[-1].first_seen_at, "id": rows[-1].id}
    return found[:most]


async def meet_now(search: str, wanted: Filter) -> int:
    """Take note of all homes that a search matches now, without a notice each, and return how many. A part of them joins
    the unit, and the parts before it are commits of their own: without the search that the unit saves they say nothing."""
    now = await db.now()
    lows: dict[str, dict[str, float | None]] = {}
    async for page in db.pages(ACTIVE, key="id", size=PAGE, after=""):
        for row in page:
            if row.home_id is not None and matches(wanted, row):
                known, found = lows.get(row.home_id, {}), lowest([row])
                lows[row.home_id] = {kind: min(_prices(known.get(kind), found[kind]), default=None) for kind in KINDS}
    homes = [*lows]
    for start in range(0, len(homes), PAGE):
        rows = [{"search": search, "now": now, "home": home, **lows[home]} for home in homes[start : start + PAGE]]
        if start + PAGE < len(homes):
            async with app.unit():
                db.write_many(MEET, rows)
        else:
            db.write_many(MEET, rows)
    return len(homes)


def _prices(*prices: float | None) -> list[float]:
    return [price for price in prices if price is not None]


async def find_home(id: str) -> dict[str, Any] | None:
    """Return a home with its listings, why they were joined, and the prices of each."""
    home = await db.first(HOME, id=id)
    if home is None:
        return None
    why = {row.listing_id: row for row in await db.rows(LINKS, id=id)}
    found = []
    for row in await db.rows(OF_HOME, home=id):
        link = why.get(row.id)
        prices = [each.asdict() for each in await db.rows(VERSIONS, id=row.id)]
        joined = {"why": link.why if link else "", "score": link.score if link else 0.0}
        found.append(listing_shown(row) | joined | {"prices": prices})
    shown: dict[str, Any] = home.asdict()
    return shown | {"listings": found}
