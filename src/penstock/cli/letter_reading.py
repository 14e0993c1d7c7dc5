"""Dead letters of a file that is only looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

from penstock.cli import target as targets
from penstock.cli.operating import plainly
from penstock.contracts.store import Rows
from penstock.model.usage import Measure
from penstock.queues.letters import DeadLetters
from penstock.runtime.engine import Engine


@contextmanager
def reading_letters(found: targets.Target) -> Iterator[DeadLetters]:
    """Lists, groups and gets letters as `app.dead` does. Nothing is opened that could write."""
    with targets.reading(found) as reading, plainly():
        engine = cast(Engine, _OnlyReading(reading))

        async def opened() -> Engine:
            return engine

        yield DeadLetters(opened, {})


class _OnlyReading:
    """All of an engine that looking needs."""

    def __init__(self, reading: targets.OnlyReading) -> None:
        self._reading = reading

    async def read(self, task: str, sql: str, bound: dict[str, Any], *, rows_max: int) -> Rows:
        rows = self._reading.ask(sql, **bound)
        columns = rows[0].columns if rows else ()
        return Rows(columns, [tuple(row) for row in rows], Measure(sql, 1, 0, 0, 0, 0, 0.0))
