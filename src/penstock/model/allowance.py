"""What the statements of one HTTP request may read of the engine, and how much they may return and take."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from penstock.model.errors import TooLarge, TooManyRows
from penstock.model.statement import one_line

ENGINE_VIEWS = {  # the views of the engine that clients may read; with the tables that they read
    "dead_messages": ("penstock_dead",),
    "processed_events": ("penstock_seen",),
    "pipeline_log": ("penstock_ticks", "penstock_timers"),
    "api_calls_ledger": ("penstock_calls", "penstock_workers"),
}


class Allowance(msgspec.Struct):
    """Rows and seconds are for each statement, bytes for all of them together. Rows are counted while they are fetched."""

    rows_max: int
    bytes_max: int
    seconds_max: float
    bytes_taken: int = 0

    def collect(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Fetch the rows. Raises TooManyRows or TooLarge at the first row beyond the allowance."""
        found: list[tuple[Any, ...]] = []
        for row in rows:
            if len(found) == self.rows_max:
                raise TooManyRows(
                    f"The query returned more than {self.rows_max:,} rows: `{one_line(sql, 80)}`. Add a LIMIT.",
                    rows_max=self.rows_max,
                )
            self.bytes_taken += sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
            if self.bytes_taken > self.bytes_max:
                raise TooLarge(
                    f"The answer has more than {self.bytes_max:,} bytes. Add a LIMIT, or name fewer columns.",
                    bytes_max=self.bytes_max,
                )
            found.append(row)
        return found
