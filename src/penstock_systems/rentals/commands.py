"""`penstock rentals`: sources, listings, homes and searches from a shell, beside the workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

import penstock as ps
from penstock.commands import (
    Answer,
    Command,
    NotFound,
    Noun,
    StatementFailed,
    Target,
    allow_option,
    database_option,
    fill,
    opened_app,
    read_once,
    refuse,
    table,
)
from penstock.commands import find as find_target
from penstock.connect import DeclaredConnector
from penstock_systems.rentals.settings import NO_SOURCE

USUAL_FILE = "rentals.db"
T = TypeVar("T")
SOURCES = (("Source", "left"), ("Verdict", "left"), ("Last run", "left"), ("Cursor", "left"), ("Error", "left"))
LISTINGS = (("Listing", "left"), ("Price", "right"), ("Rooms", "right"), ("m²", "right"), ("Title", "left"))


def use(database: str | None, work: Callable[[], Awaitable[T]]) -> T:
    """Open the database of the rentals beside the workers, and do the work."""
    from penstock_systems.rentals.system import app

    found = find_target(None, database, usual=USUAL_FILE)
    app.database = found.address

    async def main() -> T:
        async with opened_app(Target(found.address, found.config, app)):
            return await work()

    try:
        return asyncio.run(main())
    except ps.HttpError as error:
        raise (NotFound(str(error)) if error.status == 404 else refuse(str(error))) from error
    except StatementFailed as error:
        message = f"{found.database} is not a database of the rentals."
        raise ps.BadConfig(message, hint="Create one: `penstock run rentals`. Name another with --database.") from error


@click.group(cls=Noun)
def rentals() -> None:
    """Read what the rentals found, and operate its sources.

    Without --database it is the database that PENSTOCK_DATABASE or penstock.toml names, or rentals.db in this folder, which
    `penstock run rentals` creates.

    Example:
      penstock rentals sources
      penstock rentals find --max-price 1200 --rooms 2
      penstock rentals report rentals.html
    """


@rentals.command(cls=Command)
@database_option
def sources(database: str | None) -> Answer:
    """List the sources: what each last run found, and its error.

    Example:
      penstock rentals sources
    """
    from penstock_systems.rentals.app import app
    from penstock_systems.rentals.reading import source_shown

    async def work() -> list[dict[str, Any]]:
        try:
            return [source_shown(row) for row in await app.sources.list()]
        except StatementFailed:
            if app.sources.sources:
                raise
            return []  # the tables of sources are created by the first start that has one

    found = use(database, work)
    if not found:
        return Answer({"sources": []}, NO_SOURCE)
    shown = ("name", "verdict", "last_run_at", "cursor", "last_error")
    rows = [[each[name] or "" for name in shown] for each in found]
    return Answer({"sources": found}, fill(table(*SOURCES), rows))


@rentals.command("try", cls=Command)
@click.argument("name")
@allow_option
def try_source(name: str, allow: tuple[str, ...]) -> Answer:
    """Fetch one page of a source as it is configured, and show the records in it. Nothing is saved.

    Example:
      penstock rentals try stockholm
    """
    from penstock_systems.rentals.app import settings
    from penstock_systems.rentals.settings import Settings

    [spec] = Settings(sources={name: settings.sources.get(name, {})}, connectors=settings.connectors).specs()
    return read_once(DeclaredConnector(spec), allow=(*settings.allow, *allow))


@rentals.command(cls=Command)
@click.argument("name")
@database_option
def run(name: str, database: str | None) -> Answer:
    """Make a source due now, whatever its cadence. A worker runs it.

    Example:
      penstock rentals run olx
    """
    from penstock_systems.rentals.app import app

    use(database, lambda: app.sources.run_soon(name))
    return Answer({"source": name, "due": True}, f"Made {name} due. See how it ends with: penstock rentals sources")


@rentals.command(cls=Command)
@click.option("--max-price", type=float)
@click.option("--rooms", type=float)
@click.option("--near", metavar="LAT,LON,KM")
@click.option("--limit", type=click.IntRange(1, 500), default=20, show_default=True)
@database_option
def find(max_price: float | None, rooms: float | None, near: str | None, limit: int, database: str | None) -> Answer:
    """List the latest active listings that fit.

    Example:
      penstock rentals find --max-price 1200 --near 50.06,19.94,2
    """
    from penstock_systems.rentals import reading, routes
    from penstock_systems.rentals.searches import Filter, price_of

    async def work() -> list[Any]:
        wanted = Filter(max_price=max_price, min_rooms=rooms, max_rooms=rooms, near=routes.read_near(near))
        return list(await reading.find_listings(wanted, None, limit))

    found = use(database, work)
    prices = ["" if (price := price_of(row)) is None else f"{price:,.0f} {row.currency or ''}" for row in found]
    rows = [
        (row.id, price, row.rooms or "", row.area_m2 or "", row.title) for row, price in zip(found, prices, strict=True)
    ]
    shown = fill(table(*LISTINGS), rows) if rows else "No listing fits."
    return Answer({"listings": [reading.listing_shown(row) for row in found]}, shown)


@rentals.command(cls=Command)
@click.argument("id")
@database_option
def homes(id: str, database: str | None) -> Answer:
    """Show a home: its listings, why they were joined, and their prices.

    Example:
      penstock rentals homes olx:1000042
    """
    from penstock_systems.rentals.reading import find_home

    found = use(database, lambda: find_home(id))
    if found is None:
        raise NotFound(f"There is no home {id!r}. `penstock rentals find --json` names the home of each listing.")
    lines = [f"Home {id}: {found['status']}, known since {found['first_seen_at']}"]
    for each in found["listings"]:
        lines.append(f"  {each['id']} ({each['status']}): {each['why']}")
        prices = [price["price_total"] or price["price_base"] for price in each["prices"]]
        lines.append(
            f"    {each['title']}; prices {', '.join(f'{price:,.0f}' for price in prices if price) or 'not given'}"
        )
    return Answer(found, *lines)


@rentals.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@database_option
def report(file: Path, database: str | None) -> Answer:
    """Write the report page: map, prices, ages, price cuts, health of the sources.

    Example:
      penstock rentals report rentals.html
    """
    from penstock_systems.rentals.report import render

    file.write_text(use(database, render), encoding="utf-8")
    return Answer({"file": str(file)}, f"Wrote {file}.")


@rentals.command(cls=Command)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=100_000, show_default=True)
@database_option
def export(file: Path, limit: int, database: str | None) -> Answer:
    """Write the active listings as CSV, GeoJSON or JSON, by the name of the file.

    Example:
      penstock rentals export homes.geojson
    """
    from penstock_systems.rentals import feeds, reading
    from penstock_systems.rentals.searches import Filter

    makers: dict[str, Callable[[list[Any]], str]] = {
        ".csv": feeds.csv_text,
        ".geojson": feeds.geojson,
        ".json": lambda rows: json.dumps([reading.listing_shown(row) for row in rows], ensure_ascii=False, indent=1),
    }
    if file.suffix not in makers:
        raise refuse(f"{file} has none of the endings {', '.join(makers)}.")

    async def work() -> list[Any]:
        return list(await reading.find_listings(Filter(deal="any"), None, limit))

    rows = use(database, work)
    file.write_text(makers[file.suffix](rows), encoding="utf-8")
    return Answer({"file": str(file), "listings": len(rows)}, f"Wrote {len(rows):,} listings into {file}.")
