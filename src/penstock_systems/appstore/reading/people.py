"""What people do with the results: stars, lists, tracked keywords. All of it is theirs and touches no stage's work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import penstock as ps
from penstock_systems.appstore.reading.queries import MOST, SQL, Reading, ask

ME = "me"  # who it is where nobody says
LIST_NAME_MOST = 60


async def star(app: ps.App, ids: Sequence[int], *, user: str = ME, publishers: bool = False) -> None:
    """Stars apps, or publishers by their developer ids. A star that is there stays as it is."""
    await _each(app, SQL["star_publisher" if publishers else "star"], ids, user=user, now=await app.db.now())


async def unstar(app: ps.App, ids: Sequence[int], *, user: str = ME, publishers: bool = False) -> None:
    await _each(app, SQL["unstar_publisher" if publishers else "unstar"], ids, user=user)


async def put_on_list(app: ps.App, name: str, ids: Sequence[int], *, user: str = ME) -> None:
    """Puts apps on a list; it is made by its first app."""
    await _each(app, SQL["put_on_list"], ids, user=user, list=name, now=await app.db.now())


async def take_off_list(app: ps.App, name: str, ids: Sequence[int], *, user: str = ME) -> None:
    """Takes apps off a list; it is gone with its last app."""
    await _each(app, SQL["take_off_list"], ids, user=user, list=name)


async def track(app: ps.App, words: Sequence[str], *, user: str = ME) -> None:
    """Watches keywords: from now on each day has a snapshot of them."""
    now = await app.db.now()
    async with app.unit():
        app.db.write_many(SQL["track"], [{"keyword": word, "user": user, "now": now} for word in words])


async def untrack(app: ps.App, words: Sequence[str]) -> None:
    async with app.unit():
        app.db.write_many(SQL["untrack"], [{"keyword": word} for word in words])


async def stars(reading: Reading, *, user: str = ME, most: int = MOST) -> list[dict[str, Any]]:
    return await ask(reading, "starred_apps", user=user, most=most)


async def publishers(reading: Reading, *, user: str = ME, most: int = MOST) -> list[dict[str, Any]]:
    return await ask(reading, "starred_publishers", user=user, most=most)


async def lists(reading: Reading, *, user: str = ME, most: int = MOST) -> list[dict[str, Any]]:
    return await ask(reading, "lists", user=user, most=most)


async def on_list(reading: Reading, name: str, *, user: str = ME, most: int = MOST) -> list[dict[str, Any]]:
    return await ask(reading, "apps_on_list", user=user, list=name, most=most)


async def _each(app: ps.App, sql: str, ids: Sequence[int], **same: str) -> None:
    async with app.unit():
        app.db.write_many(sql, [{"id": id, **same} for id in ids])
