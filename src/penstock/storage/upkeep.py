"""The half of a database's upkeep that every store does alike: what was applied, what was used, what is too old."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from operator import itemgetter

from penstock.model.errors import BadApp, BadMigration
from penstock.model.forecast import Sample
from penstock.model.migration import Migration
from penstock.model.statement import one_line
from penstock.model.times import day_of, month_of
from penstock.model.upsert import quoted
from penstock.model.usage import Measure
from penstock.storage.session import StoredPart, in_transaction

ONCE_KEPT_DAYS = 15
RESOLVED_KEPT_DAYS = 90  # dead letters that were dealt with
TICKS_KEPT_DAYS = 90
USAGE_KEPT_DAYS = 400
SIZES_KEPT_DAYS = 400
AUDIT_KEPT_DAYS = 400  # and AUDIT_ROWS_MAX rows at most
AUDIT_ROWS_MAX = 100_000
CALLS_KEPT_DAYS = 400  # paid ones, and their sums
DAY_MICROS = 86_400_000_000


def not_applied(migration: Migration, reason: str, statement: str = "") -> BadMigration:
    """Return the error of a file that the database refused, at a statement or at its end."""
    where = f". The statement was: {one_line(statement)}" if statement else ", found at the end of the file"
    text = f"{migration.name}: {reason}{where}. Nothing of this file was applied."
    return BadMigration(text, name=migration.name, **({"statement": statement} if statement else {}))


def count_not_kept(table: str, reason: str) -> BadApp:
    way_out = f"Create the table in a migration, or remove `db.keep_count({table!r})`."
    return BadApp(f"The count of {table!r} cannot be kept: {reason}. {way_out}", table=table)


class StoredUpkeep(StoredPart, ABC):
    def applied(self) -> list[tuple[str, str]]:
        return self._session.rows("upkeep.applied")

    @in_transaction
    def add_usage(self, month: str, measures: Sequence[tuple[str, Measure]], *, now: int) -> None:
        # In one order everywhere: two processes that add to the same rows must not wait for each other.
        added = sorted(((task, one_line(each.sql, 500), each) for task, each in measures), key=itemgetter(0, 1))
        for task, statement, measure in added:
            spent = {
                "month": month,
                "task": task,
                "statement": statement,
                "executions": measure.executions,
                "rows_read": measure.rows_read,
                "rows_written": measure.rows_written,
                "pages": measure.pages,
                "steps": measure.steps,
                "micros": int(measure.seconds * 1_000_000),
            }
            self._session.change("upkeep.add_usage", spent)
        self._session.change("workers.note_time", {"now": now})

    # -- counts that are kept, not counted ----------------------------------------------------------

    def keep_counts(self, tables: Sequence[str]) -> None:
        """Counts each table once and keeps the count from then on; again if the table was made anew in between."""
        for table in tables:
            checked = quoted(table)
            if not self._count_is_kept(table, checked):
                self._keep_count(table, checked)

    @in_transaction
    def _keep_count(self, table: str, checked: str) -> None:
        if not self._count_is_kept(table, checked):
            self._session.change("upkeep.start_count", {"name": table})
            self._start_count(table, checked)

    @abstractmethod
    def _count_is_kept(self, table: str, checked: str) -> bool: ...
    @abstractmethod
    def _start_count(self, table: str, checked: str) -> None:
        """Count the rows, and make the triggers that keep the count inside the transactions that change it."""

    # -- sizes, and what is too old -----------------------------------------------------------------

    @abstractmethod
    def size_bytes(self) -> int: ...

    @in_transaction
    def sample_size(self, *, now: int) -> list[Sample]:
        self._session.change("upkeep.note_size", {"day": day_of(now), "at": now, "bytes": self.size_bytes()})
        return [Sample(*row) for row in self._session.rows("upkeep.sizes")]

    @in_transaction
    def prune(self, *, now: int, limit: int, dedup_seconds: float = 15 * 86_400.0) -> int:
        oldest_kept = (
            ("prune_once", now - max(ONCE_KEPT_DAYS * DAY_MICROS, int(dedup_seconds * 1_000_000))),
            ("prune_seen", now - int(dedup_seconds * 1_000_000)),
            ("prune_dead", now - RESOLVED_KEPT_DAYS * DAY_MICROS),
            ("prune_ticks", now - TICKS_KEPT_DAYS * DAY_MICROS),
            ("prune_steps", now),
            ("prune_signals", now),
            ("prune_runs", now),
            ("prune_calls", now - CALLS_KEPT_DAYS * DAY_MICROS),
            ("prune_spending", now - CALLS_KEPT_DAYS * DAY_MICROS),
            ("prune_audit", now - AUDIT_KEPT_DAYS * DAY_MICROS),
            ("prune_usage", month_of(now - USAGE_KEPT_DAYS * DAY_MICROS)),
            ("prune_sizes", day_of(now - SIZES_KEPT_DAYS * DAY_MICROS)),
        )

        removed = 0
        for statement, before in oldest_kept:
            bound = {"before": before, "limit": limit - removed}
            if statement == "prune_audit":
                bound["rows_max"] = AUDIT_ROWS_MAX
            removed += self._session.change(f"upkeep.{statement}", bound)
        return removed
