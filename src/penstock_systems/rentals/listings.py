"""Makes listings of changed records, and holds prices that are hardly true until they are seen again."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.connect import Change
from penstock_systems.rentals.app import ListingsChanged, app, db, listings_changed, settings
from penstock_systems.rentals.lookups import rows_of

PLAUSIBLE = (0.6, 1.6)  # a new price by the old one: outside, it is far more often misread than true
LISTINGS_A_MESSAGE = 250
BUCKETS = 1_000  # a degree: about 100 m
_HOUSE = re.compile(r"^(?P<street>.*\D)\s+(?P<number>\d+\s?[a-z]?)\b", re.IGNORECASE)
_WORD = re.compile(r"\w+")

FIND = "select id, price_base, price_total, first_seen_at from listings where id in (:keys)"
SAVE_VERSION = """
insert into listing_versions (listing_id, seen_at, kind, price_base, price_total, data)
values (:listing_id, :seen_at, :kind, :price_base, :price_total, :data)
on conflict (listing_id, seen_at) do nothing
"""
SAVE_HOLD = """
insert into price_holds (listing_id, was, seen, kind, first_seen_at)
values (:id, :was, :seen, :kind, :now)
on conflict (listing_id, kind) do update
set first_seen_at = case when price_holds.seen = excluded.seen then price_holds.first_seen_at else excluded.first_seen_at end,
  was = excluded.was, seen = excluded.seen
"""
DROP_HOLD = "delete from price_holds where listing_id = :id and kind = :kind"
GONE = "update listings set status = 'gone', gone_at = :now, changed_at = :now where id = :id"
OLD_HOLDS = """
select h.listing_id, h.was, h.seen, h.kind, h.first_seen_at, l.source
from price_holds h
join listings l on l.id = h.listing_id
where h.first_seen_at <= :before
and l.status <> 'gone'
order by h.first_seen_at
limit 200
"""
SAVE_BELIEVED = """
insert into listing_versions (listing_id, seen_at, kind, price_base, price_total, data)
select l.id, :now, 'believed', l.price_base, l.price_total, v.data
from listings l
join listing_versions v on v.listing_id = l.id
where l.id = :id
order by v.seen_at desc
limit 1
on conflict (listing_id, seen_at) do nothing
"""
BELIEVE = {
    "price_base": "update listings set price_base = :seen, changed_at = :now where id = :id",
    "price_total": "update listings set price_total = :seen, changed_at = :now where id = :id",
}


class Priced(NamedTuple):
    """What is believed of a price: the price to save, and one that is held."""

    price: float | None
    held: float | None = None


def judge_price(old: float | None, new: float | None) -> Priced:
    """Keep the old price where the new one is missing or hardly true."""
    if new is None or old is None or not old:
        return Priced(old if new is None else new)
    ratio = new / old
    return Priced(new) if PLAUSIBLE[0] <= ratio <= PLAUSIBLE[1] else Priced(old, new)


def words_of(text: str | None) -> list[str]:
    return _WORD.findall((text or "").casefold())


def split_street(street: str | None, number: str | None) -> tuple[str | None, str | None]:
    """Return the street and the house number, which may stand behind the street."""
    if street and not number and (found := _HOUSE.match(street.strip())):
        return found["street"].strip(" ,"), found["number"].replace(" ", "").lower()
    return street or None, (str(number).strip().lower() or None) if number is not None else None


def normalise(change: Change) -> dict[str, Any]:
    """Return the columns of a listing that come from its record."""
    data: Mapping[str, Any] = change.record.data
    street, number = split_street(data.get("street"), data.get("house_number"))
    lat, lon = _number(data.get("lat")), _number(data.get("lon"))
    has_place = lat is not None and lon is not None and (abs(lat) > 0.01 or abs(lon) > 0.01)
    place = " ".join(words_of(street)) if street and number else " ".join(words_of(data.get("neighborhood")))
    fees, base, total = (_number(data.get(name)) for name in ("fees", "price", "price_total"))
    if base is not None and total is None and fees is not None:
        total = base + fees
    return {
        "url": change.record.url,
        "title": str(data.get("title") or "")[:300],
        "description": data.get("description"),
        "price_base": base,
        "price_total": total,
        "fees": fees,
        "currency": data.get("currency"),
        "rooms": _number(data.get("rooms")),
        "area_m2": _number(data.get("area_m2")),
        "floor": _number(data.get("floor")),
        "city": data.get("city"),
        "neighborhood": data.get("neighborhood"),
        "street": street,
        "house_number": number,
        "lat": lat if has_place else None,
        "lon": lon if has_place else None,
        "bucket_lat": round(lat * BUCKETS) if has_place and lat is not None else None,
        "bucket_lon": round(lon * BUCKETS) if has_place and lon is not None else None,
        "place_key": f"{place} {number or ''}".strip() or None,
        "phone": data.get("phone"),
        "image": data.get("image"),
        "deal": data.get("deal") or "rent",
        "broker": data.get("broker"),
        "posted_at": data.get("posted_at"),
        "deadline": data.get("deadline"),
    }


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


async def save(changes: Sequence[Change]) -> None:
    """Save the changes of a page as listings and versions, and report them. Joins the unit of the page."""
    now = await db.now()
    ids = [f"{change.source}:{change.record.id}" for change in changes]
    known = {row.id: row for row in await rows_of(FIND, ids)}
    rows: list[dict[str, Any]] = []
    versions: list[dict[str, Any]] = []
    holds = Holds(now)
    for id, change in zip(ids, changes, strict=True):
        if change.kind == "gone":
            continue
        old = known.get(id)
        row = {"id": id, "source": change.source, "item_id": change.record.id} | normalise(change)
        for name in ("price_base", "price_total"):
            row[name] = holds.believed(id, name, old, row[name])
        row |= {"status": "back" if change.kind == "back" else "active", "changed_at": now, "gone_at": None}
        rows.append(row | {"first_seen_at": old.first_seen_at if old else now})
        data = msgspec.json.encode(change.record.data).decode()
        version = {"listing_id": id, "seen_at": now, "kind": change.kind, "data": data}
        versions.append(version | {"price_base": row["price_base"], "price_total": row["price_total"]})
    if rows:
        db.upsert("listings", rows, key="id", keep=["first_seen_at"])
        db.write_many(SAVE_VERSION, versions)
    gone = [{"id": id, "now": now} for id, change in zip(ids, changes, strict=True) if change.kind == "gone"]
    for statement, written in ((GONE, gone), (SAVE_HOLD, holds.held), (DROP_HOLD, holds.over)):
        if written:
            db.write_many(statement, written)
    sent: list[tuple[str, str, bool]] = [
        (id, change.kind, change.is_first_run) for id, change in zip(ids, changes, strict=True)
    ]
    for start in range(0, len(sent), LISTINGS_A_MESSAGE):
        listings_changed.send(ListingsChanged(changes=sent[start : start + LISTINGS_A_MESSAGE]))


class Holds:
    """The prices of one page that are held from now on, and those whose hold is over."""

    def __init__(self, now: str) -> None:
        self.now = now
        self.held: list[dict[str, object]] = []
        self.over: list[dict[str, object]] = []

    def believed(self, id: str, name: str, old: Any, new: float | None) -> float | None:
        """Return the price to save."""
        judged = judge_price(getattr(old, name) if old is not None else None, new)
        if judged.held is not None:
            self.held.append({"id": id, "was": judged.price, "seen": judged.held, "kind": name, "now": self.now})
        elif old is not None and new is not None:
            self.over.append({"id": id, "kind": name})
        return judged.price


async def has_holds() -> bool:
    return await db.exists("select 1 from price_holds where first_seen_at <= :before limit 1", before=await _before())


async def _before() -> str:
    return await db.ago(settings.hold_for)


@app.cron("*/30 * * * *", reason="an implausible price is believed once it has lasted", when=has_holds)
async def believe_lasting_prices() -> None:
    """Believe a held price that is still sent when its source was read as a whole, long enough after it was held."""
    now, before = await db.now(), await _before()
    whole = {row.name: json.loads(row.memory or "{}").get("full_at", "") for row in await app.sources.list()}
    for hold in await db.rows(OLD_HOLDS, before=before):
        if whole.get(hold.source, "") <= hold.first_seen_at:
            continue  # nothing says that it lasted
        async with app.unit():
            db.write(BELIEVE[hold.kind], id=hold.listing_id, seen=hold.seen, now=now)
            db.write(SAVE_BELIEVED, id=hold.listing_id, now=now)
            db.write(DROP_HOLD, id=hold.listing_id, kind=hold.kind)
            listings_changed.send(ListingsChanged(changes=[(hold.listing_id, "changed", False)]))
