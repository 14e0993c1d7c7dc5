"""Multi-row inserts: as many rows a statement as the limits on parameters and SQL text allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.contracts.effects import Line, WriteMany
from penstock.model.limits import Limits
from penstock.model.parameters import bind, size_of
from penstock.model.statement import Statement, writable
from penstock.model.upsert import chunk_rows, chunks, insert_ignore, numbered
from penstock.runtime.unit import Unit

ROWS_A_STATEMENT = 50  # a longer text costs more to prepare than it saves
TEXT_BYTES_KEPT = 16_000  # of a longer text no prepared statement is kept: each time it is read anew
# What is left of the full ones goes in statements of these lengths, so that a table has few texts, which are prepared once.
LENGTHS = (16, 4, 1)


class Inserted:
    """What one `insert_many` added to its unit: statements of a few lengths, each run for every chunk of that length."""

    def __init__(self, statements: Sequence[WriteMany]) -> None:
        self.statements = statements

    @property
    def changes(self) -> int:
        """How many rows were new. Known once the unit has committed."""
        return sum(statement.changes for statement in self.statements)


def insert_many(
    unit: Unit, limits: Limits, table: str, rows: Sequence[Mapping[str, object]], *, line: Line
) -> Inserted:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if not columns:
        return Inserted([])
    single = writable(insert_ignore(table, columns), limits)
    # Each row is checked alone: the limit on its size is a row's, not a statement's.
    bound = [
        bind(single, {name: row.get(name) for name in columns}, {}, row_bytes_max=limits.row_bytes_max) for row in rows
    ]
    made = []
    most = _rows_a_statement(single, columns, limits)
    for size in [most, *(length for length in LENGTHS if length < most)]:
        alike, bound = bound[: len(bound) // size * size], bound[len(bound) // size * size :]
        if alike:
            values: list[dict[str, Any]] = [numbered(columns, chunk) for chunk in chunks(alike, size)]
            statement = WriteMany(unit, insert_ignore(table, columns, rows=size), values, line)
            unit.add_call(statement, len(statement.sql) + sum(map(size_of, alike)))
            made.append(statement)
    return Inserted(made)


def _rows_a_statement(single: Statement, columns: Sequence[str], limits: Limits) -> int:
    most = chunk_rows(len(columns), limits.parameters_max, rows_max=min(limits.insert_rows_max, ROWS_A_STATEMENT))
    # Each value is `:column_123, ` in the text of the statement.
    row_bytes = sum(len(name) + 8 for name in columns)
    text_max = min(limits.sql_bytes_max, TEXT_BYTES_KEPT) - len(single.text)
    return max(1, min(most, text_max // row_bytes))
