"""The pages of the rentals in the dashboard: listings and homes, saved searches. Those of sources are the engine's."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from penstock.pages import ActionResult, Column, Input, Section
from penstock_systems.rentals import reading, routes, searches
from penstock_systems.rentals.app import app
from penstock_systems.rentals.searches import Filter, NewSearch
from penstock_systems.rentals.settings import NO_SOURCE

Price = Annotated[float | None, Input("At most")]
Rooms = Annotated[float | None, Input("Rooms, at least")]
Words = Annotated[str, Input("Words", "All of them in the title or the description")]
FOUND_MAX = 1_000  # listings that a preview counts
LISTINGS = [
    Column("title", "listing", link="/homes/{home_id}"),
    Column("price", "price", of=lambda row: _money(row)),
    Column("rooms", "rooms", "number"),
    Column("area_m2", "m²", "number"),
    Column("neighborhood", "where"),
    Column("status", "status", "state"),
    Column("first_seen_at", "seen", "time"),
    Column("url", "portal", "url"),
]
PRICES = [Column("seen_at", "seen", "time"), Column("kind", "change"), Column("price", "price", "number")]
HOME = [
    Column("status", "status", "state"),
    Column("first_seen_at", "known since", "exact_time"),
    Column("changed_at", "changed", "exact_time"),
    Column("starred", "starred", of=lambda row: "yes" if row["starred"] else None),
    Column("hidden", "hidden", of=lambda row: "yes" if row["hidden"] else None),
]
SEARCHES = [
    Column("name", "search", link="/searches/{id}"),
    Column("person", "person"),
    Column("wanted", "looks for", "prose"),
    Column("state", "state", "state"),
    Column("created_at", "created", "time"),
]


def _money(row: Any) -> str | None:
    price = row["price_total"] if row["price_total"] is not None else row["price_base"]
    return None if price is None else f"{price:,.0f} {row['currency'] or ''}"


# -- homes --------------------------------------------------------------------------------------------------


@app.page("/homes", "Homes", LISTINGS, every=10, group="Rentals")
async def show_homes(max_price: Price = None, min_rooms: Rooms = None, words: Words = "") -> Section:
    wanted = Filter(max_price=max_price, min_rooms=min_rooms, words=tuple(words.split()))
    found = [reading.listing_shown(row) for row in await reading.find_listings(wanted, None, 50)]
    return Section(rows=found, empty="No listing fits." if app.sources.sources else NO_SOURCE)


@app.page("/homes/{id}", "Home", HOME, group="Rentals")
async def show_home(id: str) -> list[Section]:
    home = await routes.show_home(id)
    why = Column("why", "why it was joined", "prose")
    parts = [Section(title=f"Home {id}", facts=home)]
    parts.append(
        Section(title="Listings", rows=home["listings"], columns=[*LISTINGS[:1], *LISTINGS[1:5], why, LISTINGS[-1]])
    )
    for each in home["listings"]:
        prices = [{**row, "price": row["price_total"] or row["price_base"]} for row in each["prices"]]
        parts.append(Section(title=f"Prices of {each['id']}", rows=prices, columns=PRICES))
    return parts


@show_home.action("Star")
async def star(id: str) -> str:
    await routes.star(id, routes.Marked())
    return "Starred."


@show_home.action("Hide", confirm="Its listings are not notified any more.")
async def hide(id: str) -> str:
    await routes.hide(id, routes.Marked())
    return "Hidden."


@show_home.action("Split off a listing")
async def split(id: str, listing: str) -> ActionResult:
    made = await routes.split(id, routes.Other(listing))
    return ActionResult(f"Listing {listing} is a home of its own.", f"/homes/{made['home']}")


# -- searches -----------------------------------------------------------------------------------------------


@app.page("/searches", "Searches", SEARCHES, empty="No search was saved yet.", every=10, group="Rentals")
async def show_searches() -> list[dict[str, Any]]:
    return [_search(each) for each in await searches.every()]


def _search(each: searches.Search) -> dict[str, Any]:
    wanted = {name: value for name in each.filter.__struct_fields__ if (value := getattr(each.filter, name))}
    shown = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in wanted.items())
    state = "paused" if each.paused else "active"
    return {"id": each.id, "name": each.name, "person": each.person, "wanted": shown, "state": state} | {
        "created_at": each.created_at
    }


@app.page("/searches/{id}", "Search", SEARCHES, group="Rentals")
async def show_search(id: str) -> list[Section]:
    found = await searches.find(id)
    rows = [reading.listing_shown(row) for row in await reading.find_listings(found.filter, None, 20)]
    return [
        Section(title=found.name, facts=_search(found)),
        Section(title="What fits now", rows=rows, columns=LISTINGS, empty="No listing fits."),
    ]


async def fitting(max_price: float | None = None, min_rooms: float | None = None, words: str = "") -> list[str]:
    """Say how many listings a search would find now."""
    wanted = Filter(max_price=max_price, min_rooms=min_rooms, words=tuple(words.split()))
    found = await reading.find_listings(wanted, None, FOUND_MAX)
    count = f"{len(found):,}{' or more' if len(found) == FOUND_MAX else ''}"
    fit = "listing fits" if len(found) == 1 else "listings fit"
    return [f"{count} {fit} now.", *(f"{_money(row.asdict()) or '-'}: {row.title}" for row in found[:3])]


@show_searches.action("New search", preview=fitting)
async def add_search(
    name: str, person: str = "me", max_price: Price = None, min_rooms: Rooms = None, words: Words = ""
) -> ActionResult:
    wanted = Filter(max_price=max_price, min_rooms=min_rooms, words=tuple(words.split()))
    id = hashlib.blake2b(f"{person}\n{name}".encode(), digest_size=8).hexdigest()
    await searches.create(NewSearch(name=name, person=person, filter=wanted), id)
    found = await reading.meet_now(id, wanted)
    return ActionResult(f"Saved {name}. {found} homes match now, without a notice each.", f"/searches/{id}")


@show_search.action("Pause")
async def pause(id: str) -> str:
    await _set_paused(id, paused=True)
    return "Paused: it finds nothing until it is resumed."


@show_search.action("Resume")
async def resume(id: str) -> str:
    await _set_paused(id, paused=False)
    return "Resumed."


async def _set_paused(id: str, *, paused: bool) -> None:
    found = await searches.find(id)
    given = NewSearch(name=found.name, person=found.person, filter=found.filter, notify=found.notify, paused=paused)
    await searches.create(given, id)


@show_search.action("Delete", confirm="The search and what it has found are deleted.", dangerous=True)
async def delete(id: str) -> ActionResult:
    await searches.delete(id)
    return ActionResult("Deleted the search.", "/searches")
