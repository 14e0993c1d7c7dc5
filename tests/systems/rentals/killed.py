"""The rentals in real time, killed again and again: what a portal shows grows with time, and every row and notice counts.

`python -m tests.systems.rentals.killed DATABASE KILLS SEED` forks a process that collects and notifies, kills it at a random
moment, forks the next, and prints what became of every listing and notice as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from penstock.channels import Channel, Flight, Notice, Outcome
from penstock_systems.rentals import searches
from penstock_systems.rentals.app import app, channels, save_changes, web
from penstock_systems.rentals.searches import Filter, NewSearch
from penstock_systems.rentals.settings import Notify
from penstock_systems.rentals.system import app as whole

assert whole is app
LIVES = (0.2, 1.3)  # seconds until a process is killed
ITEMS_A_SECOND = 4.0
CUT_AFTER = 6.0  # seconds after which an item becomes cheaper
SETTLE_SECONDS, SETTLE_SECONDS_MAX = 14.0, 200.0
FIRST_LIFE = 5.0  # seconds, in which the source is read for the first time
SPEC: dict[str, Any] = {
    "name": "portal",
    "base": "https://portal.example/list",
    "kind": "snapshot",
    "records": "@",
    "rate": 50.0,
    "every": "1m",
    "fields": {name: name for name in ("title", "price", "currency", "rooms", "area_m2", "lat", "lon")},
}


class File(Channel):
    """A receiver that honours keys: it writes each key and text as one line."""

    name = "file"
    key_seconds = 86_400.0

    def __init__(self, path: Path) -> None:
        self._path = path

    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome:
        flight.leave()
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps([key, notice.title, notice.text]) + "\n")
        return Outcome("sent")


def make_portal(began: float, last: float) -> Starlette:
    async def answer(request: Request) -> JSONResponse:
        passed = time.time() - began
        count = 10 + int(min(passed, last - began) * ITEMS_A_SECOND)
        items = []
        for number in range(count):
            is_cut = passed - max(0, number - 10) / ITEMS_A_SECOND > CUT_AFTER
            place = {"lat": 40.0 + number * 0.01, "lon": 20.0, "rooms": 2, "area_m2": 50, "currency": "EUR"}
            items.append({"id": number, "title": f"flat {number}", "price": 900 if is_cut else 1_000} | place)
        return JSONResponse(items)

    return Starlette(routes=[Route("/{path:path}", answer)])


async def live(settle: bool) -> None:
    """Run the app; make its source and its notices due all the time, at last until nothing is left to do."""

    async def push() -> None:
        began = time.monotonic()
        while (
            not settle
            or time.monotonic() < began + SETTLE_SECONDS
            or (time.monotonic() < began + SETTLE_SECONDS_MAX and await is_busy())
        ):
            await app.sources.run_soon("portal")
            await app.crons.trigger("notify")
            await asyncio.sleep(1.0 if settle else 0.15)
        app.stop()

    async with asyncio.TaskGroup() as group:
        group.create_task(app.run())
        group.create_task(push())


async def is_busy() -> bool:
    """Whether a change is still to be handled, or a notice to be sent."""
    waiting = await app.db.value("select count(*) from penstock_messages where queue = 'listings'")
    unsent = await app.db.value("select count(*) from notices where sent_at is null")
    return bool(waiting or unsent)


def child(settle: bool) -> int:
    made = os.fork()
    if made == 0:
        try:
            asyncio.run(live(settle))
        finally:
            os._exit(0)
    return made


async def begin() -> None:
    async with app:
        given = NewSearch(name="all", filter=Filter(), notify=Notify(channel="file"))
        async with app.unit():
            await searches.create(given, "all")


async def count(lines: list[str]) -> dict[str, Any]:
    async with app:
        listings = await app.db.rows("select id, price_base from listings limit 10000")
        versions = await app.db.rows("select listing_id, kind from listing_versions limit 10000")
        notices = await app.db.rows("select id, reason, listing_id, new, sent_at from notices limit 10000")
        silent = await app.db.column("select home_id from search_homes where is_silent = 1 limit 10000")
        kinds = Counter((row.listing_id, row.kind) for row in versions)
    arrived: dict[str, str] = {}
    for line in lines:
        key, title, text = json.loads(line)
        assert arrived.setdefault(key, title + text) == title + text, "one key has two texts"
    text = "\n".join(arrived.values())
    new = Counter(row.listing_id for row in notices if row.reason == "new")
    # Where a listing was cut before its first notice was written, that notice names the lower price.
    named = Counter(row.listing_id for row in notices if row.reason == "new" and row.new == 900)
    cheaper = Counter(row.listing_id for row in notices if row.reason == "cheaper")
    ids = {row.id for row in listings}
    titles = [f"New: flat {number}" for number in range(len(ids))]
    return {
        "listings": len(listings),
        "records_lost": sum(f"portal:{number}" not in ids for number in range(len(ids))),
        "versions_doubled": sum(number > 1 for number in kinds.values()),
        "not_cut": sum(row.price_base != 900 for row in listings),
        "new_missing": len(ids - set(new) - set(silent)),
        "new_doubled": sum(number > 1 for number in new.values()),
        "cheaper_missing": len([id for (id, kind) in kinds if kind == "changed" and not cheaper[id] | named[id]]),
        "cheaper_doubled": sum(number > 1 for number in cheaper.values()),
        "unsent": sum(row.sent_at is None for row in notices),
        "arrived_twice": sum(text.count(f"{title}:") + text.count(f"{title}\n") > 1 for title in titles),
        "messages": len(arrived),
    }


def main() -> int:
    database, kills, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    sent = Path(sys.argv[4])
    app.database = database
    began = time.time()
    chance = random.Random(seed)
    channels["file"] = File(sent)
    lasting = kills * (sum(LIVES) / 2) + FIRST_LIFE
    last = began + lasting
    web.mount("https://portal.example", make_portal(began, last))
    app.connector(SPEC, http=web).handler(save_changes)
    for queue in app.queues.values():  # so many deaths are the kills', and no message's fault
        queue.settings = replace(queue.settings, crashes_max=1_000_000)
    pid = os.fork()
    if pid == 0:
        asyncio.run(begin())
        os._exit(0)
    os.waitpid(pid, 0)
    for number in range(kills):
        pid = child(settle=False)
        time.sleep(chance.uniform(*LIVES) if number else FIRST_LIFE)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    while time.time() < last:
        time.sleep(0.1)
    os.waitpid(child(settle=True), 0)
    lines = sent.read_text("utf-8").splitlines() if sent.exists() else []
    print(json.dumps(asyncio.run(count(lines)) | {"kills": kills, "seconds": round(time.time() - began)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
