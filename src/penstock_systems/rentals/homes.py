"""Which home a listing offers, and what its searches are notified of: the handler of changed listings."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from penstock_systems.rentals.app import ListingsChanged, app, db, listings_changed
from penstock_systems.rentals.joining import Evidence, same_home
from penstock_systems.rentals.lookups import rows_of, rows_of_each
from penstock_systems.rentals.noticing import Noticing

COLUMNS = """
select id, source, url, title, description, price_base, price_total, currency, rooms, area_m2, floor, city, neighborhood,
  street, house_number, lat, lon, bucket_lat, bucket_lon, place_key, phone, image, deal, broker, deadline, status,
  first_seen_at, gone_at, home_id
from listings
"""
FIND = COLUMNS + "where id in (:keys)"
# Three values rather than a range: an index is read for each of them from west to east, and not from one end to the other.
NEAR = COLUMNS + (
    "where bucket_lat in (:south, :lat, :north) and bucket_lon between :west and :east order by first_seen_at limit 400"
)
AT = COLUMNS + "where place_key = :place order by first_seen_at limit 400"
OF_HOME = COLUMNS + "where home_id = :home order by first_seen_at, id limit 100"
SPLITS = """
select listing_id, other_id from home_splits where listing_id in (:keys)
union
select listing_id, other_id from home_splits where other_id in (:keys)
limit 10000
"""
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
Place = tuple[int, int] | str  # a cell of the map, or the key of an address
_age = attrgetter("first_seen_at", "id")


class Known:
    """A listing as it is in the database, with what this handler has decided on top."""

    home_id: str | None
    first_seen_at: str

    def __init__(self, row: Any) -> None:
        self.__dict__.update(row.asdict())

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)

    @property
    def cell(self) -> tuple[int, int] | None:
        """The cell of the map in which it lies."""
        return None if self.bucket_lat is None else (self.bucket_lat, self.bucket_lon)

    def places(self) -> Iterator[Place]:
        """Yield the cells around, and the address."""
        if self.bucket_lat is not None:
            around = itertools.product(range(-1, 2), range(-2, 3))
            yield from ((self.bucket_lat + north, self.bucket_lon + east) for north, east in around)
        if self.place_key is not None:
            yield self.place_key


class Joining:
    """Reads the listings of one message and those around them, and decides on their homes."""

    def __init__(self, now: str) -> None:
        self.now = now
        self.listings: dict[str, Known] = {}

    def know(self, rows: Iterable[Any]) -> list[Known]:
        """Return these rows with what was decided on them."""
        return [self.listings.setdefault(row.id, Known(row)) for row in rows]

    async def find(self, ids: Sequence[str]) -> dict[str, Known]:
        """Read listings by their ids."""
        return {each.id: each for each in self.know(await rows_of(FIND, ids))}

    async def place(self, listings: Sequence[Known]) -> set[str]:
        """Give a home to each listing that has none, and return the new homes. What it writes joins the unit."""
        homeless = [each for each in listings if each.home_id is None]
        if not homeless:
            return set()
        splits = await self._splits(homeless)
        around = await self._around(homeless)
        fresh: set[str] = set()
        links: list[dict[str, object]] = []
        for listing in homeless:
            near = {each.id: each for place in listing.places() for each in around.get(place, ())}
            evidence, home = _home_of(listing, near.values(), splits[listing.id])
            listing.home_id = home
            if evidence is ALONE:
                fresh.add(home)
            link = {"listing": listing.id, "home": home, "now": self.now}
            links.append({**link, "score": evidence.score, "why": evidence.why})
        db.write_many(ASSIGN, [{"id": each.id, "home": each.home_id} for each in homeless])
        db.write_many(SAVE_LINK, links)
        return fresh

    async def _splits(self, listings: Sequence[Known]) -> dict[str, set[str]]:
        """Return for each listing those that a person told apart from it."""
        found: dict[str, set[str]] = defaultdict(set)
        for row in await rows_of(SPLITS, [each.id for each in listings]):
            found[row.listing_id].add(row.other_id)
            found[row.other_id].add(row.listing_id)
        return found

    async def _around(self, listings: Sequence[Known]) -> dict[Place, list[Known]]:
        """Read the listings whose place may be that of one of these, and return them by place."""
        cells = dict.fromkeys(cell for each in listings if (cell := each.cell) is not None)
        keys = dict.fromkeys(each.place_key for each in listings if each.place_key is not None)
        boxes = [
            {"south": lat - 1, "lat": lat, "north": lat + 1, "west": lon - 2, "east": lon + 2} for lat, lon in cells
        ]
        self.know(await rows_of_each(NEAR, boxes))
        self.know(await rows_of_each(AT, [{"place": key} for key in keys]))
        found: dict[Place, list[Known]] = defaultdict(list)
        for each in self.listings.values():
            for place in (each.cell, each.place_key):
                if place is not None:
                    found[place].append(each)
        return found

    async def of_homes(self, homes: Sequence[str], fresh: set[str]) -> dict[str, list[Known]]:
        """Return the listings of these homes, with those that were put into them just now. A new home has no others."""
        self.know(await rows_of_each(OF_HOME, [{"home": home} for home in homes if home not in fresh]))
        found: dict[str, list[Known]] = {home: [] for home in homes}
        for each in self.listings.values():
            if each.home_id in found:
                found[each.home_id].append(each)
        return found


def _home_of(listing: Known, near: Iterable[Known], split: set[str]) -> tuple[Evidence, str]:
    """Return the home of the most similar listing, the oldest of equals, or one of its own."""
    best: tuple[Evidence, str] | None = None
    for other in sorted(near, key=_age):
        if other.id == listing.id or other.home_id is None or other.id in split:
            continue
        evidence = same_home(listing, other)
        if evidence is not None and (best is None or evidence.score > best[0].score):
            best = evidence, other.home_id
    return best or (ALONE, listing.id)


@listings_changed.handler
async def join(event: ListingsChanged) -> None:
    """Put changed listings into homes, then see which searches are to be notified."""
    joining = Joining(await db.now())
    listings = await joining.find([id for id, _, _ in event.changes])
    fresh = await joining.place([*listings.values()])
    touched: dict[str, list[tuple[Known, str, bool]]] = defaultdict(list)
    for id, kind, is_first_run in event.changes:
        if (listing := listings.get(id)) is not None:
            touched[str(listing.home_id)].append((listing, kind, is_first_run))
    offers = await joining.of_homes([*touched], fresh)
    if touched:
        rows = [home_row(home, offers[home], joining.now) for home in touched]
        db.upsert("homes", rows, key="id", keep=["first_seen_at"])
    noticing = await Noticing.begin(joining.now, [home for home in touched if home not in fresh])
    for home, changes in touched.items():
        await noticing.look(home, offers[home], changes)
    noticing.write()


def home_row(home: str, offers: Iterable[Any], now: str) -> Mapping[str, object]:
    """Return a home's row: it is gone when all its listings are."""
    statuses = {each.status for each in offers}
    status = "gone" if statuses == {"gone"} else "active"
    return {"id": home, "status": status, "first_seen_at": now, "changed_at": now}


# -- what a person decides ----------------------------------------------------------------------------------------


async def split(home: str, listing: str) -> str:
    """Take a listing out of a home, and remember it for good. Joins the unit; returns its new home."""
    joining = Joining(await db.now())
    offers = joining.know(await db.rows(OF_HOME, home=home))
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
    kept, moved = [joining.know(await db.rows(OF_HOME, home=each)) for each in (home, other)]
    await _move([each.id for each in moved], home, "joined by a person", joining.now)
    for one, second in itertools.product(kept, moved):
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
