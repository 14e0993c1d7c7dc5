"""What statements cost: measured values that add up."""

from __future__ import annotations

from operator import add
from typing import NamedTuple

from penstock.model.sql_files import load

USAGE = load("penstock.model", "usage.sql")


class Measure(NamedTuple):
    """What the executions of one SQL text cost. `rows_read` is an estimate that is never too low; the rest is
    exact, except that `steps` is 0 where an execution was not traced."""

    sql: str
    executions: int
    rows_read: int
    rows_written: int
    pages: int
    steps: int
    seconds: float

    def plus(self, other: Measure) -> Measure:
        return Measure(self.sql, *map(add, self[1:], other[1:]))
