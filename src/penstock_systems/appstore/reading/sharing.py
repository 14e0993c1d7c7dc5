"""Reports that are given to others: kept as they were, under a token that cannot be guessed, until it is taken back."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import penstock as ps
from penstock_systems.appstore.reading import report
from penstock_systems.appstore.reading.answers import TIME
from penstock_systems.appstore.reading.facts import Report
from penstock_systems.appstore.reading.queries import MOST, SQL, Reading, ask

TOKEN_BYTES = 16


async def share(app: ps.App, made: Report, *, days: int | None) -> str:
    """Keeps a report, for so many days or until it is unshared, and gives the token that opens it."""
    token = secrets.token_hex(TOKEN_BYTES)  # it is typed as an argument, and must not look like an option
    body = report.as_json(made).decode()
    now = await app.db.now()
    until = None if days is None else (datetime.fromisoformat(now) + timedelta(days=days)).strftime(TIME)
    async with app.unit():
        app.db.write(
            SQL["share"],
            token=token,
            report_id=sha256(body.encode()).hexdigest()[:16],
            title=made.title,
            body=body,
            now=now,
            expires=until,
        )
    return token


async def opened(app: ps.App, token: str) -> Report | None:
    """The report as it was when it was shared, and a note that somebody looked. None if it is not shared (any more)."""
    now = await app.db.now()
    found = await app.db.first(SQL["shared"], token=token)
    if found is None or (found.expires_at is not None and found.expires_at <= now):
        return None
    async with app.unit():
        app.db.write(SQL["note_access"], id=secrets.token_hex(TOKEN_BYTES), token=token, now=now)
    return report.from_json(found.body)


async def unshare(app: ps.App, token: str) -> bool:
    """Takes a report back, with the notes of who looked. False if there was none."""
    async with app.unit():
        gone = app.db.write(SQL["unshare"], token=token)
        app.db.write(SQL["forget_accesses"], token=token)
    return gone.changes == 1


async def shares(reading: Reading, *, most: int = MOST) -> list[dict[str, Any]]:
    return await ask(reading, "shares", most=most)
