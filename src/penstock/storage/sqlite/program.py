"""Every way through a statement's program, as arcs between places, with what each arc adds to the counters.

`EXPLAIN` lists the program. An execution is a walk through it, from the first instruction to a `Halt`; joining the end
to the beginning makes it a closed walk. SQLite tells how often some arcs were gone (its counters), not how often rows
were reached; what the counters allow is worked out in `bound.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from penstock.storage.sqlite.bytecode import END, IGNORE, STEP, Counts, Instruction, Part, State, Unreadable

PLACES_MAX = 6_000  # a program with more is not worked out: every step counts as a row


class Arc(NamedTuple):
    source: int
    target: int
    counts: Counts


class Program:
    """A listing as arcs between places. Place 0 is the start; a walk that ends goes back to it."""

    def __init__(self, listing: Sequence[tuple[Any, ...]]) -> None:
        code = [Instruction(line[1], line[2], line[3], line[4], line[6]) for line in listing]
        starts = [number for number, line in enumerate(listing) if line[0] == 0]
        parts = [Part(code[start:end]) for start, end in zip(starts, [*starts[1:], len(code)], strict=True)]
        if any(part.lines("Transaction") for part in parts[1:]):
            raise Unreadable("it is a text of several statements")
        ways = _Explorer(parts).ways()
        if any(way.counts.kept < 0 for way in ways):
            ways.append(Arc(0, 0, Counts(kept=-1)))  # rows may be left over
        else:
            ways = [way._replace(counts=way.counts._replace(kept=0)) for way in ways]
        self.arcs, stops = _joined(ways)
        # Where an execution stopped, it was in the middle of an arc: its last steps are on none, and what it changed may
        # have been undone.
        self.arcs_unfinished = [*self.arcs, *stops, Arc(0, 0, STEP), Arc(0, 0, Counts(changes=-1))]
        # Clear and VUpdate change rows without saying how many.
        self.tells_changes = not any(each.name in {"Clear", "VUpdate"} for each in code)
        # apsw sets the counters to zero when the action of a foreign key starts: it looks like a statement to it.
        self.loses_counts = any(not str(listing[start][5]).startswith("-- ") for start in starts[1:])
        self.counted = [root for part in parts for root in part.counted_roots()]


class _Explorer:
    """Goes every way there is. Subroutines and co-routines go back only where they can go back to."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._calls = [(number, line) for number, part in enumerate(parts) for line in part.lines("Program")]
        self._places: dict[State, int] = {}
        self._waiting: list[State] = []
        # For each sub-program: the places where it ends, and the states its callers go on with.
        self._ends: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
        self._returns: defaultdict[int, list[tuple[State, State]]] = defaultdict(list)

    def ways(self) -> list[Arc]:
        ways: list[Arc] = []
        self._place(self._parts[0].start(0))
        while self._waiting:
            state = self._waiting.pop()
            ways += self._from(state, self._places[state])
        return self._without_leaky_sorters(ways)

    def _place(self, state: State) -> int:
        if state not in self._places:
            if len(self._places) >= PLACES_MAX:
                raise Unreadable(f"it has more than {PLACES_MAX:,} places")
            self._places[state] = len(self._places)
            self._waiting.append(state)
        return self._places[state]

    def _from(self, state: State, source: int) -> list[Arc]:
        each = self._parts[state.part].code[state.line]
        if each.name == "Halt":
            # With an error code the walk stops here and is never finished.
            return self._halted(state.part, source, ignored=each.p2 == IGNORE) if each.p1 == 0 else []
        ways = [Arc(source, self._place(to), counts) for to, counts in self._parts[state.part].after(state)]
        if each.name == "Program":
            ways += self._called(state, source, ignored_at=each.p2)
        elif each.name in {"AutoCommit", "Savepoint"}:
            ways.append(Arc(source, 0, STEP.plus(END)))
        return ways

    def _halted(self, part: int, source: int, *, ignored: bool) -> list[Arc]:
        if part == 0:
            return [Arc(source, 0, STEP.plus(END))]
        self._ends[part].append((source, ignored))
        return [Arc(source, self._place(to[ignored]), STEP) for to in self._returns[part]]

    def _called(self, state: State, source: int, *, ignored_at: int) -> list[Arc]:
        # EXPLAIN lists sub-programs in the order of their first call, without saying which call means which.
        one_each = len(self._calls) == len(self._parts) - 1
        called = [1 + self._calls.index((state.part, state.line))] if one_each else range(1, len(self._parts))
        ways = []
        for part in called:
            to = (state._replace(line=state.line + 1), state._replace(line=ignored_at))
            self._returns[part].append(to)
            ways.append(Arc(source, self._place(self._parts[part].start(part)), STEP))
            ways += [Arc(end, self._place(to[ignored]), STEP) for end, ignored in self._ends[part]]
        return ways

    def _without_leaky_sorters(self, ways: list[Arc]) -> list[Arc]:
        """The ways without the balance of those sorters that may be left with rows in them, as by a limit."""
        sorters: defaultdict[tuple[int, int], defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for state, place in self._places.items():
            each = self._parts[state.part].code[state.line]
            if each.name.startswith("Sorter") or each.name == "ResetSorter":
                sorters[state.part, each.p1][each.name].add(place)
        out = _by_source(ways)
        leaky: set[int] = set()
        for sorter in sorters.values():
            fill, sort, drain = sorter["SorterInsert"], sorter["SorterSort"], sorter["SorterNext"]
            emptied = {0} | sorter["SorterOpen"] | sorter["ResetSorter"]
            filled = {way.target for place in fill for way in out[place]}
            taken = {way.target for place in sort | drain for way in out[place] if way.counts.unsorted}
            lost = _reached(out, filled, until=sort) & emptied
            left = _reached(out, taken, until=drain) & (emptied | fill | sort)
            if lost or left:
                leaky |= fill | sort | drain
        return [way._replace(counts=way.counts._replace(unsorted=0)) if way.source in leaky else way for way in ways]


def connected(arcs: Sequence[Arc]) -> list[Arc]:
    """The arcs that lie on a closed walk from the start."""
    there = _reached(_by_source(arcs), {0}, until=set())
    back = _reached(_by_source([Arc(arc.target, arc.source, arc.counts) for arc in arcs]), {0}, until=set())
    both = there & back
    return [arc for arc in arcs if arc.source in both and arc.target in both]


def _by_source(ways: Sequence[Arc]) -> defaultdict[int, list[Arc]]:
    out: defaultdict[int, list[Arc]] = defaultdict(list)
    for way in ways:
        out[way.source].append(way)
    return out


def _reached(out: defaultdict[int, list[Arc]], starts: set[int], *, until: set[int]) -> set[int]:
    """Every place that can be reached from `starts` without going on from the places in `until`."""
    seen = set(starts)
    waiting = list(starts)
    while waiting:
        place = waiting.pop()
        if place not in until:
            found = {way.target for way in out[place]} - seen
            seen |= found
            waiting += found
    return seen


def _joined(ways: Sequence[Arc]) -> tuple[list[Arc], list[Arc]]:
    """The same ways, with places that have one way in and one way out drawn together: a fraction is left.

    And the ways an execution stops that failed, or whose rows were not all fetched: after any instruction.
    """
    out = _by_source(ways)
    entries = Counter(way.target for way in ways)
    kept = {0} | {place for place in {*out, *entries} if len(out[place]) != 1 or entries[place] != 1}
    arcs: set[Arc] = set()
    stops = {Arc(place, 0, END) for place in kept}
    for place in kept:
        for way in out[place]:
            target, counts, visits = way.target, way.counts, way.counts.visits
            while target not in kept:
                stops.add(Arc(place, 0, counts._replace(steps=0, runs=1, visits=visits)))
                (only,) = out[target]
                target, counts = only.target, counts.plus(only.counts)
                visits = max(visits, counts.visits)
            arcs.add(Arc(place, target, counts))
    return sorted(arcs), sorted(stops)
