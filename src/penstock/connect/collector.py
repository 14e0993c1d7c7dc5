"""Runs the sources that are due: several at once, each on its own, within a time budget."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from penstock.connect.connector import Connector
from penstock.connect.page import Tally
from penstock.connect.running import SQL, Running
from penstock.connect.source import RunResult, Source, SourceError
from penstock.connect.standing import ERROR_MAX, Memory, settle, verdict_of
from penstock.model.errors import BadApp, NoSuchSource, PenstockError, Unavailable
from penstock.model.limits import near
from penstock.model.times import MICROS, in_seconds, text_of_micros
from penstock.runtime.audit import audit, record

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.cron.task import Tick
    from penstock.outbound.client import Client

CRON = "*/30 * * * *"
TASK = "collect"
PARALLEL = 4
BUDGET_SECONDS = 25.0  # after this no source starts
GRACE_SECONDS = 5.0  # that a started one has beyond it
STALE = "2h"
MARKED_AFTER_SECONDS = 2.0  # a run that takes longer is shown as running
SOURCES_MAX = 1_000
MIGRATIONS = Path(__file__).parent / "migrations"
_log = logging.getLogger("penstock.connect")


class Collector:
    """The sources of an app by name, and the task that runs them."""

    def __init__(self, home: App, make_client: Callable[[], Client], make_pace: Callable[..., Any]) -> None:
        self._home = home
        self._make_client = make_client
        self._make_pace = make_pace
        self._client: Client | None = None
        self.sources: dict[str, Source] = {}
        self.parallel = PARALLEL
        self.budget = BUDGET_SECONDS
        self.stale_after: str | float = STALE
        self._declared: object = None

    def has(self, name: str) -> bool:
        """Return whether a connector of this name is registered."""
        return name in self.sources

    def get(self, name: str) -> Source | None:
        """Return the source of this name, None where there is none."""
        return self.sources.get(name)

    def register(self, connector: Connector, client: Client | None = None) -> Source:
        if not connector.name:
            raise BadApp(f"The connector {type(connector).__name__} has no name. Set `name = ...` in its class.")
        if connector.name in self.sources:
            raise BadApp(f"There are two connectors called {connector.name!r}. Give one of them another name.")
        if len(self.sources) >= SOURCES_MAX:
            raise BadApp(f"There are {SOURCES_MAX:,} connectors, the maximum.")
        if client is None:
            self._client = client = self._client or self._make_client()
        host = urlsplit(connector.base).netloc or connector.name
        pace = self._make_pace(f"source {host}", rate=(0.01, connector.rate), parallel=1, max_wait=self.budget)
        self.sources[connector.name] = Source(self, connector, client, pace)
        return self.sources[connector.name]

    # -- a run ------------------------------------------------------------------------------------------

    async def is_any_due(self) -> bool:
        """Return whether a source is due: what the task asks before it runs."""
        await self._declare()
        return await self._home.db.value(SQL["any_due"], now=self._now_text()) is not None

    async def run(self, tick: Tick | None = None) -> RunResult:
        """Run what is due, the source that was not run for longest first. A failing source harms no other."""
        began = self._home._clock.monotonic()
        due_at = round(tick.scheduled_at.timestamp() * MICROS) if tick is not None else self._home._clock.now()
        await self._declare()
        rows = [row for row in await self._home.db.rows(SQL["sources"]) if _is_due(row, self._now_text())]
        result = RunResult(sources=len(rows))
        if not rows:
            _log.warning("collect: no source is enabled and due")
        gate = asyncio.Semaphore(max(1, self.parallel))

        async def one(row: Any) -> None:
            async with gate:
                left = self.budget - (self._home._clock.monotonic() - began)
                if row.name not in self.sources:
                    await self._skip(row, "no connector of this name is registered", result, due_at)
                elif left <= 0:
                    await self._skip(row, "the time budget was spent", result, None)
                else:
                    await self._run_one(row, self.sources[row.name], result, left + GRACE_SECONDS, due_at)

        async with asyncio.TaskGroup() as group:
            for row in rows:
                group.create_task(one(row))
        facts = result.facts
        _log.info("collect: %s", msgspec.json.encode(facts).decode(), extra={"facts": facts})
        return result

    async def _run_one(self, row: Any, source: Source, result: RunResult, seconds: float, due_at: int) -> None:
        """Whatever happens here marks this source only."""
        started = self._home._clock.now()
        _log.info("collect %s: starts from cursor %s", row.name, row.cursor)
        memory = _memory(row.memory, source.connector, started)
        running = Running(self._home, source, row.id, row.cursor, memory)
        error: BaseException | None = None
        marking = asyncio.ensure_future(self._mark_started(row.id, started))
        try:
            async with asyncio.timeout(seconds):
                await running.run()
        except TimeoutError:
            error = Unavailable(f"It took longer than {seconds:.0f} s and was stopped.")
        except Exception as raised:
            error = raised
            if not isinstance(raised, PenstockError):
                _log.warning("collect %s: %s", row.name, raised, exc_info=raised)
        finally:
            marking.cancel()
        tally = running.tally
        read = memory.last_read if tally.unchanged else tally.read
        verdict = verdict_of(error, tally, read)
        try:
            await self._settle(row, source, running, memory, verdict, error, started, due_at)
        except Exception as failure:  # what a source did is reported even where it cannot be saved
            _log.error("collect %s: its state cannot be saved: %s", row.name, failure)
            error = error or failure
        result.candidates += tally.candidates
        result.fetched += tally.inserted
        took = (self._home._clock.now() - started) / MICROS
        _log.info(
            "collect %s: %s, %d candidates, %d new, %d changed, %d gone in %.1f s",
            *(row.name, verdict, tally.candidates, tally.inserted, tally.changed, tally.gone, took),
        )
        self._point(row.name, verdict, tally, took)
        if error is None:
            result.succeeded += 1
        else:
            result.failed += 1
            result.errors.append(SourceError(row.name, verdict, str(error)[:ERROR_MAX]))

    async def _settle(
        self,
        row: Any,
        source: Source,
        running: Running,
        before: Memory,
        verdict: Any,
        error: BaseException | None,
        started: int,
        due_at: int,
    ) -> None:
        connector, tally = source.connector, running.tally
        standing = settle(row.name, before, verdict, tally, error, connector.expect, row.consecutive_failures or 0)
        memory = standing.memory
        is_good = error is None
        if is_good and not tally.unchanged:
            memory.answer, memory.has_missed = running.answer, running.has_missed
        if is_good and (running.is_full or connector.reads_all):
            memory.full_at = text_of_micros(started)
        memory.full_due = False
        memory.alerts = [*await self._report(row.name, before.alerts, standing.conditions)]
        ended = self._home._clock.now()
        wait = text_of_micros(ended + round(standing.wait_seconds * MICROS)) if standing.wait_seconds else None
        start, now = text_of_micros(started), text_of_micros(ended)
        bound = {
            "id": row.id,
            "verdict": verdict,
            "status": "ok" if is_good else "error",
            "error": None if is_good else str(error)[:ERROR_MAX],
            "started": start,
            "success": now if is_good else None,
            "nonzero": now if is_good and tally.read else None,
            "next": text_of_micros(due_at + round(connector.every * MICROS)),
            "backoff": wait,
            "failures": standing.failures,
            "disabled": standing.disabled_reason,
            "memory": msgspec.json.encode(memory).decode(),
        }
        counted = {name: value for name, value in asdict(tally).items() if name in _COUNTS}
        noted = {"source_id": row.id, "started_at": start, "ended_at": now, "verdict": verdict, "error": bound["error"]}
        async with self._home.unit():
            self._home.db.write(SQL["ended"], bound)
            if not tally.unchanged:
                moved = {"cursor_before": row.cursor, "cursor_after": tally.cursor}
                self._home.db.write(SQL["note_run"], {**noted, **counted, **moved})

    async def _report(self, name: str, open_before: Sequence[str], found: dict[str, Any]) -> Sequence[str]:
        """Send an alert for each condition that is open, and one for each that is over."""
        still = set(open_before)
        for kind, condition in found.items():
            key = f"source {name}: {kind}"
            if condition is not None:
                title, text = condition
                await self._home.alert(key, title, text, key=kind)
                still.add(kind)
            elif kind in still:
                await self._home.recovered(key)
                still.discard(kind)
        return sorted(still)

    async def _skip(self, row: Any, why: str, result: RunResult, due_at: int | None) -> None:
        _log.warning("collect %s: skipped, %s", row.name, why)
        result.skipped += 1
        following = None if due_at is None else text_of_micros(due_at + 1_800 * MICROS)
        memory = msgspec.json.decode(row.memory or "{}", type=Memory)
        try:
            if self._is_stale(row):
                title, since = f"{row.name} is overdue", row.last_run_at or row.created_at
                condition = {"stale": (title, f"{title}: it was not run since {since}, because {why}.")}
                memory.alerts = [*await self._report(row.name, memory.alerts, condition)]
            saved = msgspec.json.encode(memory).decode()
            async with self._home.unit():
                self._home.db.write(SQL["add_state"], id=row.id)
                self._home.db.write(SQL["skipped"], id=row.id, error=why, next=following, memory=saved)
        except PenstockError as error:
            _log.error("collect %s: its state cannot be saved: %s", row.name, error)

    def _is_stale(self, row: Any) -> bool:
        """A source is overdue after two of its own intervals, if those are longer."""
        every = self.sources[row.name].connector.every if row.name in self.sources else 0.0
        oldest = self._home._clock.now() - round(max(in_seconds(self.stale_after), 2 * every) * MICROS)
        return bool((row.last_run_at or row.created_at) < text_of_micros(oldest))

    async def _mark_started(self, source_id: int, started: int) -> None:
        """A run that ends soon is one write less; one that hangs is seen as running."""
        await asyncio.sleep(MARKED_AFTER_SECONDS)
        async with self._home.unit():
            self._home.db.write(SQL["started"], id=source_id, now=text_of_micros(started))

    def _point(self, name: str, verdict: str, tally: Tally, took: float) -> None:
        doubles = (tally.candidates, tally.inserted, tally.changed, tally.gone, tally.requests, tally.refused, took)
        self._home.metrics("sources", names=_POINTS).write(blobs=(name, verdict), doubles=doubles, index=name)

    async def _declare(self) -> None:
        """Give each registered source its rows, once per opened database."""
        engine = await self._home._opened()
        if self._declared is engine:
            return
        known = {row.name for row in await self._home.db.rows(SQL["sources"]) if row.consecutive_failures is not None}
        for name, source in self.sources.items():
            if name not in known:
                async with self._home.unit():
                    kind, now = source.connector.kind, self._now_text()
                    self._home.db.write(SQL["add_source"], name=name, kind=kind, now=now)
                found = await self._home.db.value(SQL["find"], name=name)
                async with self._home.unit():
                    self._home.db.write(SQL["add_state"], id=found)
        self._declared = engine

    def _now_text(self) -> str:
        return text_of_micros(self._home._clock.now())

    # -- what an operator does --------------------------------------------------------------------------

    async def list(self) -> Sequence[Any]:
        """Return every source with its state; none from a database that never had one, whose tables are missing."""
        if not self.sources and await self._home.db.first(SQL["has_sources"]) is None:
            return []
        await self._declare()
        return await self._home.db.rows(SQL["sources"])

    async def stale(self, after: str | float | None = None) -> Sequence[str]:
        """Return the enabled sources that were not run for this long, or never."""
        return await self._home.db.column(SQL["stale"], before=await self._home.db.ago(after or self.stale_after))

    async def switch(self, name: str, *, enabled: bool) -> None:
        verb, flag = ("sources enable", 1) if enabled else ("sources disable", 0)
        await self._change(name, SQL["enable"], verb, {"enabled": enabled}, enabled=flag)
        if enabled:
            await self._change(name, SQL["run_now"])

    async def reset(self, name: str) -> None:
        await self._change(name, SQL["reset"], "sources reset", {"cursor": None})

    async def run_soon(self, name: str) -> None:
        await self._change(name, SQL["run_now"], "sources run", {"due": True})
        engine = await self._home._opened()
        trigger = partial(engine.writer.timers.trigger, TASK, now=engine.clock.now())
        await engine.operate(trigger, None, {f"cron.{TASK}"})

    async def runs(self, name: str, most: int) -> Sequence[Any]:
        await self._find(name)
        return await self._home.db.rows(SQL["runs"], name=name, most=most)

    async def _find(self, name: str) -> int:
        known = {row.name: int(row.id) for row in await self.list()}
        if name not in known:
            raise NoSuchSource(f"There is no source {name!r}. {near(name, known)}", name=name)
        return known[name]

    async def _change(
        self, name: str, statement: str, verb: str = "", facts: Mapping[str, Any] | None = None, **bound: int
    ) -> None:
        """Change a source in a commit that also records the operator, with these facts."""
        found = await self._find(name)
        engine = await self._home._opened()
        noted = audit(engine, verb, "source", name, **(facts or {})) if verb else None
        async with self._home.unit() as unit:
            self._home.db.write(statement, {"id": found, **bound}, expect=1)
            record(unit, noted)


_COUNTS = ("candidates", "inserted", "changed", "gone", "back", "pages", "requests", "refused")
_MEASURES = ("candidates", "new", "changed", "gone", "requests", "refused", "seconds")
_POINTS = {"source": "blob1", "verdict": "blob2"} | {name: f"double{at}" for at, name in enumerate(_MEASURES, 1)}


def _is_due(row: Any, now: str) -> bool:
    return bool(row.enabled) and (row.next_run_at or "") <= now and (row.backoff_until or "") <= now


def _memory(text: str | None, connector: Connector, now: int) -> Memory:
    memory = msgspec.json.decode(text or "{}", type=Memory)
    if connector.full_every:
        oldest = text_of_micros(now - round(connector.full_every * MICROS))
        memory.full_due = not memory.full_at or memory.full_at <= oldest
    return memory
