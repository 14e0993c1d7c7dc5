"""The standard points: what every app reports about its queues, cron tasks, alarms, controllers and workflows, and its cost.

Events are counted in memory and reported a minute after the first of them. Every five minutes, if this process has
committed anything since, a sample of the database is reported too. An idle process reads and writes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from penstock.contracts.clock import Clock
from penstock.contracts.history import HistoryReader
from penstock.contracts.store import Store
from penstock.metrics.asking import PLATFORM, ROWS_MAX, SECONDS_MAX, Names, named, question
from penstock.metrics.book import PointBook
from penstock.metrics.sampling import Fact, look
from penstock.model.errors import BadApp, PenstockError, StatementFailed, TooManyRows
from penstock.model.firing import idle_phase
from penstock.model.row import Row, row_type
from penstock.model.statement import one_line
from penstock.runtime.engine import Engine
from penstock.runtime.events import AlarmRang, EngineEvent, MessageDied, MessageFailed, StepsEnded, TickWasIdle

if TYPE_CHECKING:
    from penstock.control.controllers import Controllers

_log = logging.getLogger("penstock.metrics")
COUNTED_SECONDS = 60.0  # what was counted in memory
FIRST_SECONDS, LOOK_SECONDS = 60.0, 300.0  # what is read from the database: after a start, and from then on
APART_SECONDS = 270.0  # of two processes' looks: a little less, since two clocks never agree on five minutes
END_SECONDS = 5.0  # what a process that stops gives its last look
INDEX = "penstock"  # what all but cron's own points are filed under, apart from what an app writes itself
HEARD = (TickWasIdle, MessageFailed, MessageDied, AlarmRang, StepsEnded)


class DatasetCounts(NamedTuple):
    """What became of points since the app was opened, in this process. `dropped` were over the quota or found no room,
    `refused` were no points."""

    written: int
    dropped: int
    refused: int


class Dataset:
    """`points = app.metrics("platform_metrics")`. Writing costs no row of the database and never waits."""

    def __init__(self, names: Names, book: PointBook, opened: Callable[[], Awaitable[Engine]]) -> None:
        self.name = names.dataset
        self.names = names
        self._book = book
        self._note = book.note
        self._opened = opened

    def write(
        self, *, blobs: Sequence[str | None] = (), doubles: Sequence[float | None] = (), index: str | None = None
    ) -> None:
        """Writes one point: up to 20 blobs to group by, up to 20 doubles to add up, and what it is filed under. Longer text
        is cut: a blob at 256 characters, the index at 96. Never waits and never raises; what is no point is counted."""
        self._note(self.name, blobs, doubles, index)

    async def query(self, sql: str, /, **named: object) -> list[Row]:
        """Asks with SQL over `points`, `hours` and `days`: at most 10,000 rows, within 10 seconds. Points are saved once a
        second, and before a question."""
        text, bound = question(self.names, sql, named)
        engine = await self._opened()
        await self._book.ask(self.name, engine)

        def answer(file: HistoryReader) -> list[Row]:
            columns, values = file.points(text, bound, rows_max=ROWS_MAX, seconds_max=SECONDS_MAX)
            made = row_type(columns)
            return [made(value) for value in values]

        try:
            rows = await engine.history.ask(answer)
        except StatementFailed as error:
            raise StatementFailed(f"{error.message.rstrip('.')}. It was: {one_line(sql)}", sql=sql) from error
        if len(rows) > ROWS_MAX:
            raise TooManyRows(
                f"The query returned more than {ROWS_MAX:,} rows: {one_line(sql)}. Group them, or add a LIMIT.",
                sql=sql,
                rows_max=ROWS_MAX,
            )
        return rows

    @property
    def counts(self) -> DatasetCounts:
        """What became of what was written here; points of the last second that wait to be saved are not in it yet."""
        tally = self._book.counted(self.name)
        return DatasetCounts(tally.written, tally.dropped, tally.refused)


class StandardPoints:
    """Listens from when it is made until `end`."""

    def __init__(self, engine: Engine, store: Store, points: Dataset, service: str, controllers: Controllers) -> None:
        self._engine = engine
        self._store = store
        self._points = points
        self._service = service
        self._controllers = controllers
        self._seen = engine.scheduler.saved
        self._telling: asyncio.TimerHandle | None = None
        self._counts: dict[tuple[str, str], list[float]] = {}
        self._last: dict[tuple[str, str], tuple[float, ...]] = {}
        kinds = HEARD if engine.history.is_kept else ()
        self._leaves = [engine.events.subscribe(self._heard, to=kind) for kind in kinds]

    async def run(self) -> None:
        await asyncio.sleep(FIRST_SECONDS)
        while self._leaves:
            await self._look(APART_SECONDS)
            await asyncio.sleep(LOOK_SECONDS)

    async def end(self) -> None:
        """Sample once more, so that the points include a short run."""
        if self._leaves:
            self._leave()
            self._tell_counts()
            with suppress(TimeoutError, PenstockError):
                async with asyncio.timeout(END_SECONDS):
                    await self._engine.meter.flush()
                    await self._look(0.0)

    def _leave(self) -> None:
        for leave in self._leaves:
            leave()
        self._leaves = []
        if self._telling is not None:
            self._telling.cancel()

    # -- what happens -----------------------------------------------------------------------------------

    def _heard(self, event: EngineEvent) -> None:
        match event:
            case TickWasIdle():
                blobs = (self._service, "cron", idle_phase(event.task))
                self._points.write(blobs=blobs, doubles=(0.0,) * 4, index=self._service)
            case MessageFailed(will_retry=True):
                self._add("failure", event.queue, 1.0, 0.0)
            case MessageDied():
                self._add("failure", event.queue, 0.0, 1.0)
            case AlarmRang():
                counted = self._add("alarm", event.object.partition("/")[0], 1.0, event.late_seconds, 0.0)
                counted[2] = max(counted[2], event.late_seconds)
            case StepsEnded():
                self._add("workflow", event.workflow, event.done, event.failed)

    def _add(self, kind: str, name: str, *numbers: float) -> list[float]:
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(COUNTED_SECONDS, self._tell_counts)
        counted = self._counts.setdefault((kind, name), [0.0] * len(numbers))
        for place, number in enumerate(numbers):
            counted[place] += number
        return counted

    # -- now and then -----------------------------------------------------------------------------------

    def _tell_counts(self) -> None:
        self._telling = None
        counts, self._counts = self._counts, {}
        for (kind, name), numbers in counts.items():
            self._write(Fact(kind, name, tuple(numbers)))

    async def _look(self, every_seconds: float) -> None:
        """Look if anything was committed here since the last look, and no other process has looked meanwhile."""
        engine = self._engine
        saved, now = engine.scheduler.saved, engine.clock.now()
        if saved == self._seen or engine.scheduler.broken is not None:
            return
        try:
            facts = await engine.history.ask(lambda file: look(file, self._store, now=now, every_seconds=every_seconds))
            if facts is not None:
                self._seen = saved
                self._tell([*facts, *[await self._pace(name) for name in self._controllers]])
        except PenstockError:
            pass  # it is read next time; the parts that need the database report that it cannot be read
        except Exception:
            _log.exception("Data points about waiting work are no longer written.")
            self._leave()

    async def _pace(self, controller: str) -> Fact:
        state = await self._controllers.status(controller)
        names = ("current_batch_size", "current_interval_ms", "rate_per_second")
        return Fact("controller", controller, tuple(float(state[name]) for name in names))

    def _tell(self, facts: Iterable[Fact]) -> None:
        for fact in facts:
            # A queue in which nothing waits is reported once.
            if fact.kind != "queue" or any(fact.numbers) or self._last.get((fact.kind, fact.name)) != fact.numbers:
                self._write(fact)
            self._last[fact.kind, fact.name] = fact.numbers

    def _write(self, fact: Fact) -> None:
        blobs = (self._service, fact.kind, fact.name, *fact.more)
        self._points.write(blobs=blobs, doubles=fact.numbers, index=INDEX)


class Datasets:
    """`app.metrics`: call it with the name of a dataset."""

    def __init__(self, clock: Clock, opened: Callable[[], Awaitable[Engine]]) -> None:
        self._opened = opened
        self._book = PointBook(clock)
        self._service: str | None = None
        self.declared: dict[str, Dataset] = {}

    def __call__(self, name: str, *, names: Mapping[str, str] | None = None, service: str | None = None) -> Dataset:
        """A dataset: `points = app.metrics("platform_metrics")`, then `points.write(blobs=("pipeline", "cron", "scan"),
        doubles=(3, 1), index="pipeline")`. `names` says what columns are called in questions: `{"phase": "blob3"}`. `service`
        is the name under which the app's standard points are filed, by default the app's own."""
        known = self.declared.get(name)
        columns = {} if known is None else dict(known.names.columns)
        for column, place in (names or {}).items():
            if columns.setdefault(column, place) != place:
                raise BadApp(f"Dataset {name!r}: {column!r} stands for {columns[column]} and for {place}. Name one.")
        if known is None:
            known = self.declared[name] = Dataset(named(name, columns), self._book, self._opened)
        else:
            known.names = named(name, columns)
        if service is not None:
            self._service = service
        return known

    def begin(self, engine: Engine) -> None:
        """From here on points are saved."""
        self._book.begin(engine)

    async def end(self) -> None:
        await self._book.end()

    def standard(self, engine: Engine, store: Store, app: str, controllers: Controllers) -> StandardPoints:
        """Return what a worker reports about itself. `store` is the engine's database, read unmetered."""
        return StandardPoints(engine, store, self(PLATFORM), self._service or app, controllers)
