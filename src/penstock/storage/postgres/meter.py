"""What each statement cost on PostgreSQL: rows written exactly, rows read from the server's own counters.

The counters are exact, but a look at them costs as much as several statements. So each text is measured the first few times
it runs and then once in a while; in between its executions are taken to read as many rows as the measured ones did. For a
text whose executions are alike the sum is exact; otherwise its error is that of one execution in `EVERY` standing for all.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import psycopg

from penstock.model.usage import Measure

FIRST = 5  # runs of a text that are all measured
EVERY = 16  # later one run in this many
TEXTS_MAX = 1_000

# An index-only scan counts no fetched rows, but the index's own counter knows its entries.
PROBE = """
select
  coalesce(sum(seq_tup_read + greatest(idx_tup_fetch, coalesce(entries, 0))), 0)
from pg_stat_xact_user_tables
left join lateral (
  select sum(pg_stat_get_xact_tuples_returned(indexrelid)) as entries
  from pg_index
  where indrelid = relid
) as indexes on true
where schemaname <> 'penstock'
"""


@dataclass(slots=True)
class _MeteredText:
    runs: int = 0
    executions: int = 0  # those that were measured
    rows_read: int = 0


class RunBegun(NamedTuple):
    sql: str
    executions: int
    at: float
    rows_before: int | None  # None if this run is not measured


class PostgresMeter:
    """Measures one connection, inside transactions only: outside one the counters hold what came before."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._cursor = connection.cursor()
        self._known: OrderedDict[str, _MeteredText] = OrderedDict()

    def begin(self, sql: str, executions: int) -> RunBegun:
        known = self._known.get(sql)
        if known is None:
            known = self._known[sql] = _MeteredText()
            if len(self._known) > TEXTS_MAX:
                self._known.popitem(last=False)
        known.runs += 1
        looks = known.runs <= FIRST or known.runs % EVERY == 0
        before = self._rows() if looks else None
        return RunBegun(sql, executions, time.perf_counter(), before)

    def end(self, begun: RunBegun, *, rows_written: int) -> Measure:
        seconds = time.perf_counter() - begun.at
        known = self._known.setdefault(begun.sql, _MeteredText())
        if begun.rows_before is not None:
            read = self._rows() - begun.rows_before
            known.executions += begun.executions
            known.rows_read += read
        else:
            read = -(-known.rows_read * begun.executions // max(known.executions, 1))  # rounded up
        return Measure(begun.sql, begun.executions, read, rows_written, 0, 0, seconds)

    def _rows(self) -> int:
        row = self._cursor.execute(PROBE).fetchone()
        return 0 if row is None else int(row[0])
