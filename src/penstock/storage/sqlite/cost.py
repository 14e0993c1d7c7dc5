"""What one SQL text can cost: the most rows its executions can have read, given what SQLite counted about them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from penstock.storage.sqlite.bound import Bound
from penstock.storage.sqlite.bytecode import Arc, Program, Unreadable

REMEMBERED_MAX = 64  # different sets of counters with their result; a statement by key has one or two

Listing = Sequence[tuple[Any, ...]]


class Seen(NamedTuple):
    """What was counted, over all executions of a text. None: not known. `rows` is known only if all ran to their end."""

    runs: int
    rows: int | None = None
    changes: int | None = None
    steps: int | None = None
    scanned: int | None = None
    indexed: int | None = None
    passed: int | None = None
    stopped: int | None = None
    unsorted: int = 0


class Most(NamedTuple):
    """No more rows than these were reached one by one, and no more tables than these were counted whole."""

    visits: int
    counted: int


class Cost:
    def __init__(self, listing: Listing) -> None:
        self.listing = listing
        self._remembered: dict[Seen, Most | None] = {}
        self._bounds: dict[tuple[bool, str, tuple[str, ...]], tuple[Bound, tuple[str, ...]]] = {}
        try:
            self._program: Program | None = Program(listing)
        except Unreadable:
            self._program = None

    @property
    def tables_counted(self) -> list[tuple[int, int]]:
        """Database number and root page of each table that is counted whole."""
        return self._program.counted if self._program else []

    @property
    def transactions(self) -> int:
        return self._program.transactions if self._program else 0

    @cached_property
    def bounded(self) -> bool:
        """Whether an execution reads no more than a fixed number of rows, so that it need not be traced."""
        return not self.tables_counted and self.most(Seen(runs=1, changes=0)) is not None

    def most(self, seen: Seen) -> Most | None:
        """None: the program cannot be read, or cannot have counted this."""
        try:
            return self._remembered[seen]
        except KeyError:
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            found = self._remembered[seen] = self._worked_out(seen)
            return found

    def _worked_out(self, seen: Seen) -> Most | None:
        if self._program is None:
            return None
        if not self._program.tells_changes:
            seen = seen._replace(changes=None)
        visits = self._most("visits", seen)
        counted = self._most("counted", seen) if self.tables_counted else 0
        if visits is not None and counted is not None:
            return Most(visits, counted)
        # More may have gone on in between than these executions: ask again for less.
        return None if seen.rows is None else self._worked_out(seen._replace(rows=None))

    def _most(self, of: str, seen: Seen) -> int | None:
        finished = seen.rows is not None
        known = tuple(name for name in Seen._fields if getattr(seen, name) is not None and (finished or name != "unsorted"))
        if (finished, of, known) not in self._bounds:
            self._bounds[finished, of, known] = self._bound(of, known, finished=finished)
        bound, counters = self._bounds[finished, of, known]
        return bound.most(tuple(getattr(seen, name) for name in counters))

    def _bound(self, of: str, known: tuple[str, ...], *, finished: bool) -> tuple[Bound, tuple[str, ...]]:
        assert self._program is not None
        arcs: list[Arc] = self._program.arcs if finished else self._program.arcs_unfinished
        counters = tuple(name for name in known if any(getattr(arc.counts, name) for arc in arcs))
        return Bound(
            [
                (
                    arc.source,
                    arc.target,
                    getattr(arc.counts, of),
                    tuple(getattr(arc.counts, name) for name in counters),
                )
                for arc in arcs
            ],
            len(counters),
        ), counters
