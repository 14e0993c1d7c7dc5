"""What one SQL text can cost: the most rows its executions can have read, given what SQLite counted about them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from penstock.storage.sqlite.bound import Bound
from penstock.storage.sqlite.bytecode import Unreadable
from penstock.storage.sqlite.program import Program, connected

PROGRAMS_MAX = 2_000  # with what is known of each, in a process
REMEMBERED_MAX = 64  # different sets of counters with their result; a statement by key has one or two
BOUNDS_MAX = 32  # which counters are zero, unknown or neither; a statement has few of these cases
_TOLD_DELETE = 0x41  # P2 of Delete: counted as a change, or only told to hooks and not done

Listing = Sequence[tuple[Any, ...]]


class Seen(NamedTuple):
    """What was counted over all executions of a text; None: not known. `rows` is known only if all ran to their end."""

    runs: int | None = None
    rows: int | None = None
    changes: int | None = None
    steps: int | None = None
    scanned: int | None = None
    indexed: int | None = None
    passed: int | None = None
    stopped: int | None = None


class Most(NamedTuple):
    """No more rows than these were reached one by one, and no more tables than these were counted whole."""

    visits: int
    counted: int


def fingerprint(listing: Listing) -> int:
    """Differs when a program differs; the listings themselves would fill the memory."""
    return hash(tuple(listing))


@lru_cache(PROGRAMS_MAX)
def cost_of(program: tuple[tuple[Any, ...], ...]) -> Cost:
    """Follows from the program alone, whichever connection runs it: what took milliseconds to work out serves all of them,
    also in several threads at once."""
    return Cost(program)


class Cost:
    def __init__(self, listing: Listing) -> None:
        self.fingerprint = fingerprint(listing)
        try:
            self._program: Program | None = Program(listing)
        except Unreadable:
            self._program = None
        self.counts_tables = any(line[1] == "Count" for line in listing)
        # Database number and root page of each table that is counted whole.
        self.tables_counted = self._program.counted if self._program else []
        transactions = [line for line in listing if line[1] == "Transaction"]
        self.transactions = len(transactions)
        self.only_reads = not any(line[3] for line in transactions)
        # Whether rows may be deleted that are not counted as changes, as `insert or replace` does.
        self.hides_deletes = not self.only_reads and any(
            line[1] == "Delete" and not line[3] & _TOLD_DELETE for line in listing
        )
        self._remembered: dict[tuple[int | None, ...], Most | None] = {}
        self._bounds: dict[tuple[bool, str, tuple[bool | None, ...]], tuple[Bound, tuple[str, ...]]] = {}

    @cached_property
    def bounded(self) -> bool:
        """Whether an execution reads no more than a fixed number of rows, so that it need not be traced."""
        return not self.counts_tables and self.most(Seen(runs=1, changes=0)) is not None

    def most(self, seen: tuple[int | None, ...]) -> Most | None:
        """The most that fits a `Seen`. None: the program cannot be read, or cannot have counted this."""
        try:
            return self._remembered[seen]
        except KeyError:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            found = self._remembered[seen] = self._worked_out(Seen(*seen))
            return found

    def _worked_out(self, seen: Seen) -> Most | None:
        if self._program is None:
            return None
        if not self._program.tells_changes:
            seen = seen._replace(changes=None)
        if self._program.loses_counts:
            seen = seen._replace(scanned=None, indexed=None, passed=None, stopped=None)
        visits = self._most("visits", seen)
        counted = self._most("counted", seen) if self.counts_tables else 0
        if visits is not None and counted is not None:
            return Most(visits, counted)
        # More may have gone on in between than these executions: ask again for less.
        return None if seen.rows is None else self._worked_out(seen._replace(rows=None))

    def _most(self, of: str, seen: Seen) -> int | None:
        finished = seen.rows is not None
        known: dict[str, int | None] = {**seen._asdict(), "kept": 0}
        if finished:
            known["unsorted"] = 0  # a sorter is not left with rows in it
        signs = tuple(None if value is None else value > 0 for value in known.values())
        found = self._bounds.get((finished, of, signs))
        if found is None:
            if len(self._bounds) >= BOUNDS_MAX:
                self._bounds.clear()
            found = self._bounds[finished, of, signs] = self._bound(of, known, finished=finished)
        bound, counters = found
        return bound.most(tuple(known[name] or 0 for name in counters))

    def _bound(self, of: str, known: dict[str, int | None], *, finished: bool) -> tuple[Bound, tuple[str, ...]]:
        assert self._program is not None
        arcs = self._program.arcs if finished else self._program.arcs_unfinished
        for name in [name for name, value in known.items() if value == 0]:
            if all(getattr(arc.counts, name) >= 0 for arc in arcs):
                # Ways that add to a counter were not gone if it is zero, nor was what can be reached only through them.
                arcs = connected([arc for arc in arcs if not getattr(arc.counts, name)])
        counters = tuple(
            name
            for name, value in known.items()
            if value is not None and any(getattr(arc.counts, name) for arc in arcs)
        )
        return Bound(
            [
                (arc.source, arc.target, getattr(arc.counts, of), tuple(getattr(arc.counts, name) for name in counters))
                for arc in arcs
            ],
            len(counters),
        ), counters
