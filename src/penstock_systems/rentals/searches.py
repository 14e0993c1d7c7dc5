"""Saved searches: what a person looks for, and whether a listing is it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

import penstock as ps
from penstock_systems.rentals.app import app, channels, db, settings
from penstock_systems.rentals.joining import distance
from penstock_systems.rentals.listings import words_of
from penstock_systems.rentals.settings import Notify

SEARCHES_MAX = 2_000
ALL = """
select id, person, name, filter_json, notify_json, paused, created_at
from searches
order by created_at, id
limit 2000
"""
FIND = "select id, person, name, filter_json, notify_json, paused, created_at from searches where id = :id"
DELETE = ("delete from search_homes where search_id = :id", "delete from searches where id = :id")


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a search wants. A listing that does not say passes, except for its price and its place."""

    deal: Literal["rent", "sublet", "swap", "any"] = "rent"
    currency: str | None = None
    max_price: float | None = None
    min_price: float | None = None
    min_rooms: float | None = None
    max_rooms: float | None = None
    min_area: float | None = None
    max_area: float | None = None
    near: tuple[float, float, float] | None = None  # latitude, longitude, kilometres
    neighborhoods: tuple[str, ...] = ()
    words: tuple[str, ...] = ()  # all of them, in the title or description
    without: tuple[str, ...] = ()
    private: bool = False  # no brokers


class NewSearch(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    name: str
    person: str = "me"
    filter: Filter = Filter()
    notify: Notify = Notify()
    paused: bool = False  # causes no notices


class Search(msgspec.Struct, frozen=True):
    id: str
    person: str
    name: str
    filter: Filter
    notify: Notify
    paused: bool
    created_at: str

    @staticmethod
    def of(row: Any) -> Search:
        wanted = msgspec.json.decode(row.filter_json, type=Filter)
        notify = msgspec.json.decode(row.notify_json, type=Notify)
        return Search(row.id, row.person, row.name, wanted, notify, bool(row.paused), row.created_at)


def price_of(listing: Any) -> float | None:
    """Return the price that a person compares: the total where it is known."""
    found: float | None = listing.price_total if listing.price_total is not None else listing.price_base
    return found


def matches(wanted: Filter, listing: Any) -> bool:
    """Return whether a listing is what a search wants."""
    price = price_of(listing)
    return (
        (wanted.deal == "any" or listing.deal in (wanted.deal, "unknown"))
        and (wanted.currency is None or listing.currency == wanted.currency)
        and _within(price, wanted.min_price, wanted.max_price, unknown=wanted.max_price is None)
        and _within(listing.rooms, wanted.min_rooms, wanted.max_rooms)
        and _within(listing.area_m2, wanted.min_area, wanted.max_area)
        and not (wanted.private and listing.broker == 1)
        and _in_place(wanted, listing)
        and _has_words(wanted, listing)
    )


def _within(value: float | None, least: float | None, most: float | None, *, unknown: bool = True) -> bool:
    if value is None:
        return unknown
    return (least is None or value >= least) and (most is None or value <= most)


def _in_place(wanted: Filter, listing: Any) -> bool:
    if wanted.neighborhoods and (listing.neighborhood or "").casefold() not in {
        each.casefold() for each in wanted.neighborhoods
    }:
        return False
    if wanted.near is None:
        return True
    if listing.lat is None or listing.lon is None:
        return False
    lat, lon, kilometres = wanted.near
    return distance(lat, lon, listing.lat, listing.lon) <= kilometres * 1_000


def _has_words(wanted: Filter, listing: Any) -> bool:
    if not wanted.words and not wanted.without:
        return True
    have = set(words_of(f"{listing.title} {listing.description or ''}"))
    return have >= {each.casefold() for each in wanted.words} and not have & {
        each.casefold() for each in wanted.without
    }


def check(given: NewSearch) -> None:
    given.notify.check()
    channel = given.notify.channel or settings.channel
    if channel and channel not in channels:
        known = ", ".join(sorted(channels)) or "none; add one under [channels] in penstock.toml"
        raise ps.HttpError(422, f"There is no channel {channel!r}. Known: {known}.", field="notify.channel")
    if given.filter.near is not None and not 0 < given.filter.near[2] <= 500:
        raise ps.HttpError(422, "near is latitude, longitude and kilometres, up to 500.", field="filter.near")


async def create(given: NewSearch, id: str) -> None:
    """Save a search. Homes that match now are not notified one by one. Joins the unit."""
    check(given)
    if await db.more_than(SEARCHES_MAX, "select 1 from searches"):
        raise ps.HttpError(409, f"There are {SEARCHES_MAX:,} searches, the maximum.")
    row = {"id": id, "person": given.person, "name": given.name[:200], "paused": int(given.paused)}
    written = {"filter_json": given.filter, "notify_json": given.notify}
    row |= {name: msgspec.json.encode(each).decode() for name, each in written.items()}
    db.upsert("searches", row | {"created_at": await db.now()}, key="id", keep=["created_at"])


async def find(id: str) -> Search:
    row = await db.first(FIND, id=id)
    if row is None:
        raise ps.HttpError(404, f"There is no search {id[:60]!r}.")
    return Search.of(row)


async def every() -> list[Search]:
    return [Search.of(row) for row in await db.rows(ALL)]


async def delete(id: str) -> None:
    await find(id)
    for statement in DELETE:
        db.write(statement, id=id)


__all__ = ["Filter", "NewSearch", "Search", "app", "create", "delete", "every", "find", "matches", "price_of"]
