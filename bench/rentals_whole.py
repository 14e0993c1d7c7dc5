"""The whole rentals system over 50 sources, in a process of its own: listings, homes, searches; memory after each tenth.

`python bench/rentals_whole.py FOLDER LISTINGS_A_SOURCE` prints what it measured as JSON, and progress to standard error.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that it runs as a file too

import penstock as ps
from penstock.connect import Http, Page, Record
from penstock_systems.rentals import searches
from penstock_systems.rentals.app import app, save_changes
from penstock_systems.rentals.searches import Filter, NewSearch
from penstock_systems.rentals.system import app as _whole

assert _whole is app
SOURCES, TENTHS = 50, 10
PAGE = 500  # records
SHARED = 5  # of every second source, one listing in five is a flat that the source before offers too
CUT = 20  # in the last run, one listing in twenty is cheaper
SIDE = 1.0  # degrees of latitude and longitude that the flats are spread over
LATER = "update source_state set next_run_at = '9999'"
NOW = "update source_state set next_run_at = null where source_id between :first and :last"
RUNS = "select count(*) from source_runs"
WAITING = "select count(*) from penstock_messages where queue = 'listings'"
LOOK_SECONDS = 0.2
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Portal(ps.Connector):
    """Makes its listings while it is read, so that none of the memory is the benchmark's."""

    reads_all = True
    prices_cut = False

    def __init__(self, number: int, listings: int) -> None:
        self.name = f"portal-{number}"
        self.number = number
        self.listings = listings

    async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
        for start in range(0, self.listings, PAGE):
            ids = range(start, min(start + PAGE, self.listings))
            yield Page([self.record(id) for id in ids], cursor=str(start), complete=ids.stop == self.listings)

    def record(self, id: int) -> Record:
        number = self.number - 1 if self.number % 2 and id % SHARED == 0 else self.number
        chance = Random(number * 1_000_003 + id)
        price = chance.randrange(400, 3_000)
        street, house = f"Street {chance.randrange(2_000)}", str(chance.randrange(1, 90))
        lat, lon = 50 + SIDE * chance.random(), 20 + SIDE * chance.random()
        data = {"title": f"flat {number}-{id} in a quiet street", "price": price, "currency": "EUR", "street": street}
        data |= {"house_number": house, "lat": lat, "lon": lon, "area_m2": chance.randrange(20, 120)}
        data |= {"rooms": chance.randrange(1, 6), "floor": chance.randrange(6), "city": "Modelton"}
        if self.prices_cut and id % CUT == 0:
            data["price"] = round(price * 0.9)
        return Record(f"r{id}", data, url=f"https://{self.name}.example/{id}")


def memory_mb() -> float:
    """What is in memory now; on systems that do not say, the most there was."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text("ascii").split()[1]) * PAGE_BYTES / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


async def handle(first: int, last: int, done: int) -> float:
    """Let these sources be collected and what they have be joined, and return the seconds. `done` runs are over then."""
    async with app.unit():
        app.db.write(LATER)
        app.db.write(NOW, first=first, last=last)
    began = time.perf_counter()
    await app.crons.trigger("collect")
    while await app.db.value(RUNS) < done or await app.db.value(WAITING):  # noqa: ASYNC110 (what is waited for are rows)
        await asyncio.sleep(LOOK_SECONDS)
    return time.perf_counter() - began


async def measure(listings: int) -> dict[str, object]:
    portals = [Portal(number, listings) for number in range(SOURCES)]
    for portal in portals:
        app.connector(portal).handler(save_changes)
    async with app:
        await app.sources.list()  # gives each source its rows
        async with app.unit():
            app.db.write(LATER)
            for id, rent in (("small", 900.0), ("large", 1_600.0), ("dear", 2_500.0)):
                await searches.create(NewSearch(name=id, filter=Filter(min_rooms=2, max_price=rent)), id)
    async with asyncio.TaskGroup() as group:
        group.create_task(app.run())
        found = await measure_running(portals, listings)
        app.stop()
    return found


async def measure_running(portals: list[Portal], listings: int) -> dict[str, object]:
    """Return what one process that goes on running needs for new listings, for the same again, and for changed ones."""
    tenths, new = [], 0.0
    share = SOURCES // TENTHS
    for last in range(share, SOURCES + 1, share):
        took = await handle(last - share + 1, last, last)
        new += took
        tenths.append(memory_mb())
        say(f"{last * listings:,} listings: {tenths[-1]:.1f} MB, {share * listings / took:,.0f} new listings/s")
    unchanged = await handle(1, SOURCES, 2 * SOURCES)
    after = [memory_mb()]
    say(f"all of them unchanged: {after[-1]:.1f} MB in {unchanged:.1f} s")
    for portal in portals:
        portal.prices_cut = True
    changed = await handle(1, SOURCES, 3 * SOURCES)
    after.append(memory_mb())
    say(f"one in {CUT} cheaper: {after[-1]:.1f} MB in {changed:.1f} s")
    counts = {
        "listings": await app.db.value("select count(*) from listings"),
        "homes": await app.db.value("select count(*) from homes"),
        "cut": await app.db.value("select count(*) from listing_versions where kind = 'changed'"),
    }
    assert counts["listings"] == SOURCES * listings, counts
    assert counts["homes"] == SOURCES * listings - SOURCES // 2 * len(range(0, listings, SHARED)), counts
    assert counts["cut"] == SOURCES * len(range(0, listings, CUT)), counts
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    seconds = {"new": new, "unchanged": unchanged, "changed": changed, "processor": time.process_time()}
    return {"tenths": tenths, "after": after, "peak": peak, **seconds, **counts}


def say(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    app.database = str(Path(sys.argv[1]) / "whole.db")
    print(json.dumps(asyncio.run(measure(int(sys.argv[2])))))
