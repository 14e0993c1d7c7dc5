"""Hands for tests of the crawl: rows to begin with, a cycle at a time, and a search that answers as a test wants it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import apsw
import msgspec
import psycopg
import pytest

from penstock_systems.appstore import app as shared
from penstock_systems.appstore import outside
from penstock_systems.appstore.crawl import cycle as cycle_task  # the tasks are there once these are imported
from penstock_systems.appstore.daily import mailing
from penstock_systems.appstore.daily import run as daily_task
from penstock_systems.appstore.store.facts import Found
from tests.systems.appstore.conftest import Opened, Pipeline

OWN = (cycle_task, daily_task, mailing)
db = shared.db
THEN = "2025-12-01 00:00:00"
NEVER = "9999-01-01 00:00:00"


@asynccontextmanager
async def crawling(pipeline: Opened, *, charts: bool = False, **given: Any) -> AsyncIterator[Pipeline]:
    """The app with all tasks at rest, also those of other stages: `cycle` and `day` run theirs. Without `charts` none of
    them is due."""
    async with pipeline(**given) as it:
        for name in shared.app.crons.tasks:
            await shared.app.crons.pause(name)
        for name in shared.app.controllers.names():
            await shared.app.controllers.operate(name, "stop")
        if not charts:
            await write(it, "update category_scans set next_scan_at = :never", never=NEVER)
        yield it


async def write(it: Pipeline, sql: str, **named: object) -> None:
    async with it.running.unit():
        db.write(sql, named)


async def insert(it: Pipeline, table: str, *rows: Mapping[str, object]) -> None:
    async with it.running.unit():
        db.insert_many(table, rows)


async def insert_apps(it: Pipeline, *rows: Mapping[str, object]) -> None:
    """Apps with no more than a test is about."""
    await insert(it, "app_registry", *({"first_seen_at": THEN, "last_seen_at": THEN, **row} for row in rows))


async def insert_keywords(it: Pipeline, *rows: Mapping[str, object] | str) -> None:
    plain = [{"keyword": row} if isinstance(row, str) else row for row in rows]
    await insert(it, "crawl_keywords", *({"source": "test", "created_at": THEN, **row} for row in plain))


async def leap(it: Pipeline, *, days: float = 0, hours: float = 0, minutes: float = 0) -> None:
    """Sets the clock forward: what would have happened meanwhile has not."""
    it.running.jump(86_400 * days + 3_600 * hours + 60 * minutes)
    await it.running.advance(seconds=2)


async def cycle(it: Pipeline) -> dict[str, Any]:
    """Runs one cycle to its end, and gives its stats; nothing if there was nothing to do."""
    before = await it.sql("select id from crawl_log")
    await run_task(it, "crawl")
    seen = {row.id for row in before}
    after = [row for row in await it.sql("select id, stats, phase, error from crawl_log") if row.id not in seen]
    if not after:
        return {}
    stats: dict[str, Any] = msgspec.json.decode(after[0].stats)
    return stats | {"phase": after[0].phase, "error": after[0].error}


async def run_task(it: Pipeline, name: str) -> str:
    """Runs a cron task once, a second from now, and says how that ended."""
    await it.running.advance(seconds=1)
    await shared.app.crons.trigger(name)
    await it.running.drain()
    [last] = await it.sql(
        "select status, error from pipeline_log where task = :name order by created_at desc limit 1", name=name
    )
    assert last.status in ("done", "idle"), last.error
    return str(last.status)


async def day(it: Pipeline) -> dict[str, Any]:
    """Runs the daily task, and gives what each of its parts noted today."""
    await run_task(it, "daily")
    rows = await it.sql("select pipeline_id, name, status, counts from pipeline_steps order by pipeline_id desc, name")
    newest = [row for row in rows if row.pipeline_id == rows[0].pipeline_id]
    return {row.name: msgspec.json.decode(row.counts) | {"status": row.status} for row in newest}


def found(track_id: int, title: str | None = None, **more: Any) -> Found:
    return Found(track_id=track_id, title=f"App {track_id}" if title is None else title, **more)


class Scripted:
    """Answers searches from a table. An exception in it is raised, and every search is noted with its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, it: Pipeline) -> None:
        self.answers: dict[str, Sequence[Found] | Exception] = {}
        self.usual: Sequence[Found] | Exception = ()
        self.asked: list[tuple[float, str]] = []
        self._it = it
        monkeypatch.setattr(outside.store, "search", self.search)

    async def search(self, term: str, limit: int = 25) -> list[Found]:
        self.asked.append((self._it.running.now.timestamp(), term))
        answer = self.answers.get(term, self.usual)
        if isinstance(answer, Exception):
            raise answer
        return list(answer[:limit])


async def analyze() -> None:
    """The planner knows how much is in the tables, as it does soon after they were filled."""
    if await shared.db.dialect() == "sqlite":
        apsw.Connection(shared.app.database).execute("analyze")
    else:
        with psycopg.connect(shared.app.database, autocommit=True) as connection:
            connection.execute("analyze")
