"""Which home a listing offers, and what its searches are notified of: the handler of changed listings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from penstock_systems.rentals.app import ListingsChanged, app, db, listings_changed
from penstock_systems.rentals.joining import Evidence, same_home
from penstock_systems.rentals.noticing import Noticing

COLUMNS = """
select id, source, url, title, description, price_base, price_total, currency, rooms, area_m2, floor, city, neighborhood,
  street, house_number, lat, lon, bucket_lat, bucket_lon, place_key, phone, image, deal, broker, deadline, status,
  first_seen_at, gone_at, home_id
from listings
"""
FIND = COLUMNS + "where id = :id"
NEAR = COLUMNS + (
    "where bucket_lat between :south and :north and bucket_lon between :west and :east order by first_seen_at limit 400"
)
AT = COLUMNS + "where place_key = :place order by first_seen_at limit 400"
OF_HOME = COLUMNS + "where home_id = :home order by first_seen_at, id limit 100"
SPLITS = "select listing_id, other_id from home_splits where listing_id = :id or other_id = :id limit 1000"
ASSIGN = "update listings set home_id = :home where id = :id"
SAVE_LINK = """
insert into home_listings (listing_id, home_id, score, why, joined_at)
values (:listing, :home, :score, :why, :now)
on conflict (listing_id) do update
set home_id = excluded.home_id, score = excluded.score, why = excluded.why, joined_at = excluded.joined_at
"""
# What searches know of a home is also true of a home that is split from it or joined to it: neither is new to them.
COPY_KNOWN = """
insert into search_homes (search_id, home_id, low_base, low_total, is_silent, summarised, matched_at)
select search_id, :made, low_base, low_total, is_silent, summarised, matched_at
from search_homes
where home_id = :home
on conflict (search_id, home_id) do nothing
"""
FORGET_KNOWN = "delete from search_homes where home_id = :home"
FORGET_SPLIT = "delete from home_splits where listing_id = :id and other_id = :other"
ALONE = Evidence(0.0, "the first")


class Known:
    """A listing as it is in the database, with what this handler has decided on top."""

    __slots__ = ("_row", "home_id")

    def __init__(self, row: Any) -> None:
        self._row = row
        self.home_id: str | None = row.home_id

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)


class Joining:
    """Reads the listings of one message and those around them, and decides on their homes."""

    def __init__(self, now: str) -> None:
        self.now = now
        self.listings: dict[str, Known] = {}

    async def read(self, sql: str, **named: object) -> list[Known]:
        return [self.listings.setdefault(row.id, Known(row)) for row in await db.rows(sql, named)]

    async def around(self, listing: Known) -> list[Known]:
        """Return the listings whose place may be that of this one."""
        found: list[Known] = []
        if listing.bucket_lat is not None:
            lat, lon = listing.bucket_lat, listing.bucket_lon
            found += await self.read(NEAR, south=lat - 1, north=lat + 1, west=lon - 2, east=lon + 2)
        if listing.place_key is not None:
            found += await self.read(AT, place=listing.place_key)
        return found

    async def place(self, listing: Known) -> bool:
        """Give a listing its home, and return whether the home is new."""
        if listing.home_id is not None:
            return False
        split = {id for row in await db.rows(SPLITS, id=listing.id) for id in row}
        best: tuple[Evidence, Known] | None = None
        for other in await self.around(listing):
            if other.id == listing.id or other.home_id is None or other.id in split:
                continue
            evidence = same_home(listing, other)
            if evidence is not None and (best is None or evidence.score > best[0].score):
                best = evidence, other
        evidence, home = (ALONE, listing.id) if best is None else (best[0], str(best[1].home_id))
        listing.home_id = home
        db.write(ASSIGN, id=listing.id, home=home)
        link = {"listing": listing.id, "home": home, "now": self.now}
        db.write(SAVE_LINK, link, score=evidence.score, why=evidence.why)
        return best is None

    async def of_home(self, home: str) -> list[Known]:
        """Return the listings of a home, with those that were put into it just now."""
        await self.read(OF_HOME, home=home)
        return [each for each in self.listings.values() if each.home_id == home]


@listings_changed.handler
async def join(event: ListingsChanged) -> None:
    """Put changed listings into homes, then see which searches are to be notified."""
    joining = Joining(await db.now())
    touched: dict[str, list[tuple[Known, str, bool]]] = defaultdict(list)
    fresh: set[str] = set()
    for id, kind, is_first_run in event.changes:
        found = await joining.read(FIND, id=id)
        if not found:
            continue
        [listing] = found
        if await joining.place(listing):
            fresh.add(str(listing.home_id))
        touched[str(listing.home_id)].append((listing, kind, is_first_run))
    noticing = await Noticing.begin(joining.now)
    for home, changes in touched.items():
        offers = await joining.of_home(home)
        is_new = home in fresh
        db.upsert("homes", home_row(home, offers, joining.now), key="id", keep=["first_seen_at"])
        await noticing.look(home, offers, changes, is_new=is_new)


def home_row(home: str, offers: Iterable[Any], now: str) -> Mapping[str, object]:
    """Return a home's row: it is gone when all its listings are."""
    statuses = {each.status for each in offers}
    status = "gone" if statuses == {"gone"} else "active"
    return {"id": home, "status": status, "first_seen_at": now, "changed_at": now}


# -- what a person decides ----------------------------------------------------------------------------------------


async def split(home: str, listing: str) -> str:
    """Take a listing out of a home, and remember it for good. Joins the unit; returns its new home."""
    joining = Joining(await db.now())
    offers = await joining.read(OF_HOME, home=home)
    chosen = next((each for each in offers if each.id == listing), None)
    if chosen is None or len(offers) < 2:
        return home
    for other in offers:
        if other.id != listing:
            row = {"listing_id": listing, "other_id": other.id, "decided_at": joining.now}
            db.upsert("home_splits", row, key=["listing_id", "other_id"])
    # A home has the name of its first listing, so that one is told apart from a home that keeps its name.
    made = f"{listing}+{joining.now}" if listing == home else listing
    await _move([listing], made, "split by a person", joining.now)
    db.upsert("homes", home_row(made, [chosen], joining.now), key="id", keep=["first_seen_at"])
    db.write(COPY_KNOWN, made=made, home=home)
    return made


async def unite(home: str, other: str) -> None:
    """Put the listings of another home into this one. Joins the unit."""
    joining = Joining(await db.now())
    kept, moved = [await joining.read(OF_HOME, home=each) for each in (home, other)]
    await _move([each.id for each in moved], home, "joined by a person", joining.now)
    for one, second in product(kept, moved):
        db.write(FORGET_SPLIT, id=one.id, other=second.id)
        db.write(FORGET_SPLIT, id=second.id, other=one.id)
    db.upsert("homes", home_row(home, [*kept, *moved], joining.now), key="id", keep=["first_seen_at"])
    db.write(COPY_KNOWN, made=home, home=other)
    db.write(FORGET_KNOWN, home=other)
    db.write("delete from homes where id = :id", id=other)


async def _move(listings: Iterable[str], home: str, why: str, now: str) -> None:
    for id in listings:
        db.write(ASSIGN, id=id, home=home)
        db.write(SAVE_LINK, listing=id, home=home, score=1.0, why=why, now=now)


__all__ = ["Joining", "app", "home_row", "join", "split", "unite"]
