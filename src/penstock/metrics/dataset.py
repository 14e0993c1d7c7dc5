"""A dataset: what a program writes its data points to, and asks about them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from penstock.contracts.history import HistoryReader
from penstock.metrics.asking import ROWS_MAX, SECONDS_MAX, Names, question
from penstock.metrics.book import PointBook
from penstock.model.errors import StatementFailed, TooManyRows
from penstock.model.row import Row, row_type
from penstock.model.statement import one_line
from penstock.runtime.engine import Engine


class Counts(NamedTuple):
    """What became of points since the app was opened, in this process. `dropped` were over the quota or found no room,
    `refused` were no points."""

    written: int
    dropped: int
    refused: int


class Dataset:
    """`points = app.metrics("platform_metrics")`. Writing costs no row of the database and holds nobody up."""

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
                f"The query gave more than {ROWS_MAX:,} rows: {one_line(sql)}. Group them, or add a LIMIT.",
                sql=sql,
                rows_max=ROWS_MAX,
            )
        return rows

    @property
    def counts(self) -> Counts:
        """What became of what was written here; points of the last second that wait to be saved are not in it yet."""
        tally = self._book.counted(self.name)
        return Counts(tally.written, tally.dropped, tally.refused)
