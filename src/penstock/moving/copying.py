"""Copies a database from one end to the other: what cannot go is named first, what went is read back and compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

from penstock.contracts.audit import Audit
from penstock.contracts.effects import SealedUnit
from penstock.contracts.presence import Departed
from penstock.model.migration import Migration, plan
from penstock.moving.tables import CannotMove, Marks, MoveSource, MoveTarget, Row, Sum, Table, copied
from penstock.storage.presence import obituary
from penstock.stores import store_at

# Claims draw tokens one by one, and an external client may still hold one that was drawn after this moment.
TOKENS_APART = 2**32
PROGRESS_EVERY = 1_000  # rows between two reports of progress

Progress = Callable[[int], None]
MigrationsFor = Callable[[str], Sequence[Migration]]


class Copied(NamedTuple):
    table: str
    rows: int
    checksum: str


def migrations_of(source: MoveSource, destination: str, found: MigrationsFor | None) -> Sequence[Migration]:
    """What makes the users' tables at the other end, once it is sure that it made them at this one."""
    users = [table.name for table in copied(source.tables()) if not table.is_engines]
    applied = source.applied()
    if found is None:
        if users or applied:
            raise CannotMove(
                f"The app's migrations create your tables ({', '.join(users) or 'none at present'}) at the target. "
                "Name the app: --app market.py. Nothing was written."
            )
        return ()
    pending = plan(found(source.origin), applied)
    if pending:
        raise CannotMove(
            f"{len(pending)} migrations are pending here, from {pending[0].name} on, so the tables would not match. Apply "
            "them first (`penstock migrate`), or name the earlier version of the app; nothing was written."
        )
    return found(destination)


def rows_to_copy(source: MoveSource) -> int:
    return sum(source.count(table) for table in copied(source.tables()))


def copy(source: MoveSource, destination: MoveTarget, *, kept: bool, progress: Progress) -> list[Copied]:
    """Everything but what belongs to processes. The destination has its tables already; it is finished by this. `kept`
    says that rows go to a file that only keeps them, without what is made around tables."""
    tables = _planned(source, destination, kept=kept)
    sums: list[tuple[Table, Sum]] = []
    done = _Steps(progress)
    for table in tables:
        summed = Sum(table)
        destination.fill(table, done.over(summed.over(source.rows(table))))
        sums.append((table, summed))
    for table, summed in sums:
        again = Sum(table)
        for row in done.over(destination.rows(table)):
            again.add(row)
        if (again.rows, again.checksum) != (summed.rows, summed.checksum):
            raise CannotMove(
                f"Table {table.name} differs after the copy: {again.rows:,} rows ({again.checksum}) instead "
                f"of {summed.rows:,} ({summed.checksum}). The copy was deleted.",
                table=table.name,
            )
    marks = source.marks()
    destination.finish(Marks(marks.numbers, marks.token + TOKENS_APART))
    return [Copied(table.name, summed.rows, summed.checksum) for table, summed in sums]


def _planned(source: MoveSource, destination: MoveTarget, *, kept: bool) -> list[Table]:
    there = destination.tables()
    problems: list[str] = []
    tables: list[Table] = []
    for table in copied(source.tables()):
        other = there.get(table.name)
        if other is None:
            problems.append(f"Table {table.name} is created by no migration for {destination.dialect}.")
            continue
        lacking = [name for name in table.names if name not in other.names]
        if lacking:
            problems.append(f"{table.name} has no column {', '.join(lacking)} on {destination.dialect}.")
            continue
        kinds = {column.name: column for column in other.columns}
        columns = tuple(column if column.kind else kinds[column.name] for column in table.columns)
        tables.append(Table(table.name, columns))
    if not kept:
        problems += [
            f"{thing[0].upper()}{thing[1:]} does not exist on {destination.dialect}."
            for thing in sorted(source.things() - destination.things())
        ]
        if source.origin != destination.dialect:
            problems += source.strangers()
    for table in tables:
        problems += source.misfits(table)
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise CannotMove(f"The database cannot be moved, and nothing was written:\n{listed}", problems=problems)
    return tables


class _Steps:
    """Tells how many rows have passed, not for each of them."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._done = 0

    def over(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._done += 1
            if self._done % PROGRESS_EVERY == 0:
                self._progress(self._done)
            yield row


# -- who worked on it ---------------------------------------------------------------------------------------


def departed(cells_of: Callable[[int], memoryview | None], workers: Iterable[int]) -> list[Departed]:
    """What workers that are gone had begun, by their lists of running handlers: what was suspected stays so."""
    return [obituary(worker, cells_of(worker)) for worker in workers]


def let_go(address: str, gone: Iterable[Departed], *, now: int, audit: Audit) -> None:
    """Release the claims of processes that do not work on this database: they worked on its source. A process that
    is not among `gone` was alive then, and nothing that it held is suspected."""
    known = {each.worker: each for each in gone}
    with closing(store_at(address).open_writer(now=now)) as writer:
        workers = writer.workers
        for row in workers.listed():
            if row.id != workers.me:
                each = known.get(row.id, Departed(row.id, [], []))
                workers.return_rows(row.id, started=each.started, charged=each.blamed, now=now)
        unit = SealedUnit("")
        unit.effects.append(audit)
        writer.ledger.commit([unit], (), now=now, sweep=False)
        workers.retire(workers.me, now=now)
