"""Multi-row inserts: as many rows a statement as the limits on parameters and SQL text allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.contracts.ledger import Line, Write
from penstock.model.limits import Limits
from penstock.model.parameters import bind, size_of
from penstock.model.statement import writable
from penstock.model.upsert import chunk_rows, chunks, insert_ignore, numbered
from penstock.runtime.unit import Unit


class Inserted:
    """The statements of one `insert_many`."""

    def __init__(self, statements: Sequence[Write]) -> None:
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
    single = writable(
        insert_ignore(table, columns), bytes_max=limits.sql_bytes_max, parameters_max=limits.parameters_max
    )
    # Each row is checked alone: the limit on its size is a row's, not a statement's.
    bound = [
        bind(single, {name: row.get(name) for name in columns}, {}, row_bytes_max=limits.row_bytes_max) for row in rows
    ]
    most = chunk_rows(len(columns), limits.parameters_max, rows_max=limits.insert_rows_max)
    # Each value is `:column_123, ` in the text of the statement.
    row_bytes = sum(len(name) + 8 for name in columns)
    most = max(1, min(most, (limits.sql_bytes_max - len(single.text)) // row_bytes))
    made = []
    for chunk in chunks(bound, most):
        values = numbered(columns, chunk)
        statement = Write(unit, insert_ignore(table, columns, rows=len(chunk)), values, None, line)  # type: ignore[arg-type]
        unit.add(statement, len(statement.sql) + sum(map(size_of, chunk)))
        made.append(statement)
    return Inserted(made)
