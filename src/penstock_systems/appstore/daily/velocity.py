"""Rating velocity: how many ratings a day an app has won since its oldest snapshot of three to ten days ago.

The columns are called `..._7d` after the week that is usual; the unit is ratings a day. Below zero means that the store took
ratings back.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from penstock.data import chunks
from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.crawl.figures import note_new_figures
from penstock_systems.appstore.moments import day_of, days_between

OLDEST_DAYS, YOUNGEST_DAYS = 10, 3
PAGE = 1_000  # snapshots of one day in memory
UPDATES_A_BATCH = 50
BATCHES_A_COMMIT = 20

OF_A_DAY = """
select track_id, rating_count, snapshot_at
from app_snapshots
where day = :day
and track_id > :after
order by track_id
limit :size
"""
SAVE = """
update app_registry
set rating_velocity_7d = :velocity, rating_count_7d_ago = :ratings, rating_velocity_updated_at = :now
where track_id = :track_id
"""


class Seen(msgspec.Struct, frozen=True):
    """A count of ratings at a time."""

    ratings: int
    at: str


def velocity(before: Seen, current: Seen) -> float:
    """Ratings a day, to two places. Less than a day counts as one."""
    return round((current.ratings - before.ratings) / max(days_between(before.at, current.at), 1.0), 2)


async def measure_velocity(now: str) -> dict[str, object]:
    """Apps that were measured, and how many of them lost ratings."""
    measured = falling = 0
    waiting: list[dict[str, object]] = []
    async for track_id, before, current in pairs(now):
        speed = velocity(before, current)
        measured += 1
        falling += speed < 0
        waiting.append({"track_id": track_id, "velocity": speed, "ratings": before.ratings, "now": now})
        if len(waiting) >= UPDATES_A_BATCH * BATCHES_A_COMMIT:
            await _save(waiting)
            waiting = []
    await _save(waiting)
    if measured:
        async with app.unit():
            note_new_figures(now)
    return {"measured": measured, "falling": falling}


async def pairs(now: str) -> AsyncIterator[tuple[int, Seen, Seen]]:
    """Each app with a snapshot of today and an older one, in the order of their ids. All days are read along in that order,
    a page of each in memory, and the younger ones only for apps that the older ones do not have."""
    days = [day_of(now, days=-back) for back in range(OLDEST_DAYS, YOUNGEST_DAYS - 1, -1)]
    older = [Stream(day) for day in days]
    async for page in db.pages(OF_A_DAY, key="track_id", size=PAGE, day=day_of(now)):
        for row in page:
            for stream in older:
                if (before := await stream.at(row.track_id)) is not None:
                    yield row.track_id, before, Seen(row.rating_count, row.snapshot_at)
                    break


class Stream:
    """The snapshots of one day, looked up in the order of their ids: what lies between two of them is not read."""

    def __init__(self, day: str) -> None:
        self._day = day
        self._page: Sequence[Any] = ()
        self._place = 0
        self._ended = False

    async def at(self, track_id: int) -> Seen | None:
        """The snapshot of this app, if there is one. Ask for ever larger ids."""
        if not self._ended and (not self._page or self._page[-1].track_id < track_id):
            self._page = await db.rows(OF_A_DAY, day=self._day, after=track_id - 1, size=PAGE)
            self._place, self._ended = 0, len(self._page) < PAGE
        while self._place < len(self._page) and self._page[self._place].track_id < track_id:
            self._place += 1
        if self._place == len(self._page) or self._page[self._place].track_id != track_id:
            return None
        return Seen(self._page[self._place].rating_count, self._page[self._place].snapshot_at)


async def _save(rows: Sequence[dict[str, object]]) -> None:
    async with app.unit():
        for batch in chunks(rows, UPDATES_A_BATCH):
            db.write_many(SAVE, batch)
