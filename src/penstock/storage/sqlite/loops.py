"""Counts the loops of a statement and the fewest steps of a turn, which bound the rows an execution can have visited.

SQLite counts steps, not rows. A row is visited by one instruction (`Next`, `SeekGE`, ...), so the fewest steps from one
visit to the next bound the visits that fit into the steps counted. A few passes over the listing of `explain` find them.
An instruction that is not listed as straight may jump to P2. One that a newer SQLite adds makes a bound higher, never
too low.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

NEVER = 1 << 60  # steps to what cannot be reached

_NEXT = {"Next", "Prev", "VNext"}  # jump to P2 with the next row
_SEEKS = {"SeekGE", "SeekGT", "SeekLE", "SeekLT"}  # skip the check of the range's end on an exact hit
_PROBES = _SEEKS | set("Found Last NoConflict NotExists NotFound NullRow Rewind SeekRowid SeekScan VFilter".split())
_RANGE_ENDS = {"IdxGE", "IdxGT", "IdxLE", "IdxLT"}  # jump where the row just visited lies behind the range
_OPENS = {"OpenAutoindex", "OpenRead", "OpenWrite", "ReopenIdx", "VOpen"}
_ANYWHERE = {"EndCoroutine", "Program", "Return", "Yield"}  # continue at an address kept in a register
_STRAIGHT = frozenset(
    """
    Add AddImm Affinity AggFinal AggStep AggValue BeginSubrtn BitAnd BitOr Blob Cast Close CollSeq Column Compare Concat
    Copy Count DeferredSeek Delete Divide Explain FilterAdd FinishSeek FkCounter Function HaltIfNull IdxDelete IdxInsert
    IdxRowid Insert Int64 Integer IsTrue MakeRecord Move Multiply NewRowid Noop Not Null NullRow OffsetLimit OpenAutoindex
    OpenDup OpenEphemeral OpenPseudo OpenRead OpenWrite Or Param PureFunc Real RealAffinity ReleaseReg Remainder ReopenIdx
    ResetCount ResetSorter ResultRow RowData RowSetAdd Rowid SCopy SeekHit Sequence SoftNull SorterData SorterInsert
    SorterOpen String String8 Subtract TableLock Transaction TypeCheck VColumn VOpen Variable
    """.split()
)


class Loops:
    """The bounds that follow from the listing of one program, with the programs of triggers and foreign keys behind it.

    `fixed`: visits of an execution in which no loop visits anything, else None. `beside_rows`: visits of an execution
    beyond the rows it returns, None where a visit need not return a row. `counted`: database number and root page of
    each table that one step counts whole.
    """

    def __init__(self, listing: Sequence[tuple[Any, ...]]) -> None:
        self._code = [(place - line[0], *line[1:5]) for place, line in enumerate(listing)]
        code, numbered = self._code, range(len(listing))
        alone = sum(line[0] == 0 for line in listing) == 1
        self.only_reads = not any(name == "Transaction" and p2 for _, name, _, p2, _ in code)
        counts = {(start, p1) for start, name, p1, _, _ in code if name == "Count"}
        self.counted = {(p3, p2) for start, name, p1, p2, p3 in code if name == "OpenRead" and (start, p1) in counts}
        tables = {(start, p1) for start, name, p1, _, _ in code if name in _OPENS}
        self._paths = [self._successors(place) for place in numbered]
        # P5 names the counter that each further row adds to. apsw loses these counters where other programs are called.
        full = {place for place in numbered if listing[place][6] and code[place][1] in {*_NEXT, "SorterNext"}}
        self._visits = full | {place for place in numbered if code[place][1] == "Count"}
        self._visits |= {
            place
            for place, (start, name, p1, _, _) in enumerate(code)
            # An outer join that found nothing counts once for its table and its index.
            if name in _NEXT | _PROBES
            and (start, p1) in tables
            and (name, code[place - 1][1]) != ("NullRow", "NullRow")
        }
        self._scans = full if alone else set()
        others = self._visits - self._scans
        self.probes = len(others)
        self.counts = sum(name == "Count" for _, name, *_ in code)
        self._once = None if others & self._looped(beside=set()) else len(others)
        self._a_scanned_row = len(others) if not others & self._looped(beside=self._scans) else NEVER
        self.counts_once = self._once is not None
        self.fixed = self._once if not self._scans and not counts else None
        self._output = self._output_block()
        # Where no visit leads to the next without returning a row, an execution visits the rows it returns.
        self.beside_rows = None
        if alone and not counts and self._gap(self._visits, self._steps(NEVER)) == NEVER:
            self.beside_rows = int(self._gap(self._visits, self._steps(NEVER, halt=1, range_ends=False)) < NEVER)
        # The fewest steps after a visit, and after one that SQLite counts: with and without the steps that return rows.
        known, unknown = self._steps(0), self._steps(1)
        self._known = self._gap(others, known), self._gap(self._scans, known)
        self._unknown = self._gap(others, unknown), self._gap(self._scans, unknown)
        self._first = min(self._steps(0, halt=1)[1], len(code)) + sum(start == 0 for start, *_ in code) - code[0][3] + 1

    def most(self, runs: int, steps: int, scanned: int, rows: int | None) -> int:
        """The most visits that fit the counters of `runs` executions, which returned `rows`; None: not all have ended."""
        scanned = scanned if self._scans else 0
        if self._once is not None:
            most = runs * self._once
        else:
            most = self._fitting(runs, steps, scanned, self._unknown)
            if rows is not None:
                rest = steps - runs * self._first - rows * len(self._output)
                most = min(most, self._fitting(runs, rest, scanned, self._known))
        most = min(most, (runs + scanned) * self._a_scanned_row) + scanned
        return most if rows is None or self.beside_rows is None else min(most, rows + runs * self.beside_rows)

    def _fitting(self, runs: int, steps: int, scanned: int, gaps: tuple[int, int]) -> int:
        """The most visits beside `scanned` that fit these steps. What follows an execution's last visit has no least."""
        gap, scan_gap = gaps[0], gaps[1] % NEVER
        return runs if gap == NEVER else max(0, steps - scanned * scan_gap + runs * max(gap, scan_gap)) // gap

    def _successors(self, place: int) -> list[int]:
        start, name, p1, p2, p3 = self._code[place]
        if name in _ANYWHERE or name == "Halt":
            return []
        if name == "Jump":
            return [start + p1, start + p2, start + p3]
        if name in {"Goto", "Init"}:
            return [start + p2]
        return [place + 1] if name in _STRAIGHT or p2 <= 0 else [place + 1, start + p2]

    def _found(self, place: int) -> list[int]:
        """Where a program continues after this instruction visited a row."""
        start, name, _, p2, _ = self._code[place]
        if name in {*_NEXT, "SorterNext", "Found"}:
            return [start + p2]
        if name == "SeekScan":
            return [place + 1, start + p2, start + self._code[place + 1][3]]
        skips = name in _SEEKS and self._code[place + 1][1] in _RANGE_ENDS
        return [place + 1, place + 2] if skips else [place + 1]

    def _looped(self, *, beside: set[int]) -> set[int]:
        """Every instruction that may be executed more than once, other than through the loops of `beside`."""
        spans = [(to, place) for place, paths in enumerate(self._paths) for to in paths if to <= place]
        # At the end of a program its beginning is jumped to, where it opens its tables.
        ends = {place for place, (start, name, _, p2, _) in enumerate(self._code) if (name, p2) == ("Goto", 1)}
        returns = {(start, p1): place for place, (start, name, p1, *_) in enumerate(self._code) if name == "Return"}
        for place, (start, name, p1, p2, _) in enumerate(self._code):
            if name == "Gosub":
                ends.add(place)
                spans.append((start + p2, max(returns.get((start, p1), 0), start + p2)))
            elif name == "Yield" and 0 < start + p2 <= place:
                spans.append((start + p2, place))
        depth = [0] * (len(self._code) + 1)
        for first, last in spans:
            if last not in ends | beside:
                depth[first] += 1
                depth[last + 1] -= 1
        # A program behind the first may be called any number of times.
        return {place for place, deep in enumerate(accumulate(depth[:-1])) if deep or self._code[place][0] > 0}

    def _output_block(self) -> set[int]:
        """The straight instructions that end with the only `ResultRow`: each runs once for every row returned."""
        rows = [place for place, code in enumerate(self._code) if code[1] == "ResultRow"]
        entered = {to for place, paths in enumerate(self._paths) for to in paths if to != place + 1}
        entered |= {to for place in self._visits for to in self._found(place)}
        if len(rows) != 1:
            return set()
        first = rows[0]
        while first not in entered and self._code[first - 1][1] in _STRAIGHT and first - 1 not in self._visits:
            first -= 1
        return set(range(first, rows[0] + 1))

    def _steps(self, output: int, *, halt: int = NEVER, range_ends: bool = True) -> list[int]:
        """For each instruction the fewest steps from it to a visit, or to a `Halt`.

        `output` is the price of returning a row: 1, 0 where these steps are known, NEVER where no row may be returned.
        """
        near = [0] * (len(self._code) + 1)
        for place in range(len(self._code) - 1, -1, -1):
            start, name = self._code[place][:2]
            if place in self._visits:
                continue
            if name == "Halt" and start == 0:
                near[place] = halt
            elif name == "ResultRow" and output == NEVER:
                near[place] = NEVER
            else:
                paths = self._paths[place][: 2 if range_ends or name not in _RANGE_ENDS else 1]
                price = 0 if output == 0 and place in self._output else 1
                # Backwards, or where the address is not known, a visit may follow at once.
                rest = near[paths[0]] if paths and paths[0] > place else 0
                for to in paths[1:]:
                    rest = min(rest, near[to] if to > place else 0)
                near[place] = min(NEVER, price + rest)
        return near

    def _gap(self, visits: set[int], near: list[int]) -> int:
        return min((min(NEVER, 1 + near[to]) for place in visits for to in self._found(place)), default=NEVER)
