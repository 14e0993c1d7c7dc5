"""An app's datasets, by name, and the standard points that it writes to one of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from penstock.contracts.clock import Clock
from penstock.contracts.store import Store
from penstock.metrics.asking import PLATFORM, named
from penstock.metrics.book import PointBook
from penstock.metrics.dataset import Dataset
from penstock.metrics.standard import Paced, StandardPoints
from penstock.model.errors import BadApp
from penstock.runtime.engine import Engine


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

    def standard(self, engine: Engine, store: Store, app: str, controllers: Paced) -> StandardPoints:
        """What a worker tells of itself. `store` is the engine's database, with nothing metered that is read from it."""
        return StandardPoints(engine, store, self(PLATFORM), self._service or app, controllers)
