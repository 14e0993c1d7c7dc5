"""What a compiled statement can do: every way through its program, and what each piece of the way adds to a counter.

`EXPLAIN` lists the program. An execution is a walk through it, from the first instruction to a `Halt`; joining the end
to the beginning makes it a closed walk. SQLite tells how often some pieces of the way were gone (its counters), not how
often rows were reached; what the counters allow is worked out in `bound.py`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from operator import add
from typing import Any, NamedTuple

PLACES_MAX = 20_000  # a program with more is not worked out: every step counts as a row
YIELDS_MAX = 8  # of a co-routine that are told apart; a long list of values has one for each row


class Counts(NamedTuple):
    """What a piece of the way adds up to. All but `visits` and `counted` are counted by SQLite itself."""

    visits: int = 0  # rows reached in tables, indexes and virtual tables
    counted: int = 0  # executions of Count, which reads a whole table in one step
    steps: int = 0
    runs: int = 0
    rows: int = 0  # rows returned
    changes: int = 0
    scanned: int = 0  # rows reached by going on in a full scan
    indexed: int = 0  # rows put into an automatic index
    passed: int = 0  # keys a Bloom filter let pass
    stopped: int = 0
    unsorted: int = 0  # rows put into a sorter less rows taken out; nothing is left in it at the end

    def plus(self, other: Counts) -> Counts:
        return Counts(*map(add, self, other))


STEP = Counts(steps=1)
VISIT = Counts(visits=1, steps=1)
LEFT = Counts(visits=-1, steps=1)  # the row just reached lies behind the end of the range: it is not counted
END = Counts(runs=1)

# Instructions that go on with the next one or jump to P2.
_BRANCHES = frozenset(
    """
    DecrJumpZero ElseEq Eq FkIfZero Ge Gt IFindKey If IfEmpty IfNoHope IfNot IfNotOpen IfNotZero IfNullRow IfPos
    IfSizeBetween IncrVacuum IsNull IsType Le Lt MustBeInt Ne NotNull Once RowSetRead RowSetTest SequenceTest Sort
    SorterCompare
    """.split()
)
# Instructions that always go on with the next one. What stands in neither list is taken to do either.
_STRAIGHT = frozenset(
    """
    Abortable Add AddImm Affinity AggFinal AggInverse AggStep AggStep1 AggValue And AutoCommit BeginSubrtn BitAnd
    BitNot BitOr Blob Cast Checkpoint Clear Close ClrSubtype CollSeq Column ColumnsUsed Compare Concat Copy Count CreateBtree
    CursorHint CursorLock CursorUnlock DeferredSeek Delete Destroy Divide DropIndex DropTable DropTrigger Expire
    Explain FilterAdd FinishSeek FkCheck FkCounter Function GetSubtype HaltIfNull IdxDelete IdxInsert IdxRowid Insert
    Int64 IntCopy Integer IntegrityCk IsTrue JournalMode LoadAnalysis MakeRecord MaxPgcnt MemMax Move Multiply NewRowid
    Noop Not Null NullRow Offset OffsetLimit OpenAutoindex OpenDup OpenEphemeral OpenPseudo OpenRead OpenWrite Or
    Pagecount Param ParseSchema Permutation Program PureFunc ReadCookie Real RealAffinity ReleaseReg Remainder ReopenIdx
    ResetCount ResetSorter ResultRow RowCell RowData RowSetAdd Rowid SCopy Savepoint SeekEnd SeekHit Sequence SetCookie SetSubtype
    ShiftLeft ShiftRight SoftNull SorterData SorterOpen SqlExec String String8 Subtract TableLock Trace
    Transaction TypeCheck VBegin VCheck VColumn VCreate VDestroy VInitIn VOpen VRename VUpdate Vacuum Variable
    ZeroOrNull
    """.split()
)
_TEMPORARY = {"OpenEphemeral", "OpenPseudo", "SorterOpen", "OpenDup"}
_SEEKS = {"SeekGE", "SeekGT", "SeekLE", "SeekLT"}
_RANGE_ENDS = {"IdxGE", "IdxGT", "IdxLE", "IdxLT"}
# These go on with the next instruction where they reached a row.
_REACHES = _SEEKS | {"Last", "NoConflict", "NotExists", "NotFound", "Rewind", "SeekRowid", "VFilter"}
_FULL_SCAN, _AUTO_INDEX = 1, 3  # P5 of Next and Prev: the counter that goes up with each row
_COUNTS_A_CHANGE = 0x01
_IGNORE = 4  # P2 of the Halt that is `raise(ignore)`


class Instruction(NamedTuple):
    name: str
    p1: int
    p2: int
    p3: int
    p5: int


class State(NamedTuple):
    """Where a walk is: the part, the instruction, and after which lines each subroutine and co-routine may go on."""

    part: int
    line: int
    returns: tuple[tuple[int, ...], ...]


class Arc(NamedTuple):
    source: int
    target: int
    counts: Counts


class Unreadable(Exception):
    """The program is too long, or does something this module does not know."""


class Program:
    """A listing as arcs between places. Place 0 is the start; a walk that ends goes back to it."""

    def __init__(self, listing: Sequence[tuple[Any, ...]]) -> None:
        code = [Instruction(line[1], line[2], line[3], line[4], line[6]) for line in listing]
        starts = [number for number, line in enumerate(listing) if line[0] == 0]
        ends = [*starts[1:], len(listing)]
        self._parts = [_Part(code[start:end]) for start, end in zip(starts, ends, strict=True)]
        self._places: dict[State, int] = {}
        ways = self._walk()
        self._forget_leaky_sorters(ways)
        self.arcs, stops = _joined(ways)
        # Where an execution stopped, it was in the middle of an arc: its last steps are on none, and what it changed may
        # have been undone.
        self.arcs_unfinished = [*self.arcs, *stops, Arc(0, 0, STEP), Arc(0, 0, Counts(changes=-1))]
        # Clear and VUpdate change rows without saying how many.
        self.tells_changes = not any(each.name in {"Clear", "VUpdate"} for each in code)
        # apsw sets the counters to zero when the action of a foreign key starts: it looks like a statement to it.
        self.loses_counts = any(not str(listing[start][5]).startswith("-- ") for start in starts[1:])
        self.counted = [root for part in self._parts for root in part.counted_roots()]

    def _walk(self) -> list[Arc]:
        """Every way there is, by going it: subroutines and co-routines go back only where they can go back to."""
        calls = [(number, line) for number, part in enumerate(self._parts) for line in part.lines("Program")]
        # EXPLAIN lists sub-programs in the order of their first call, without saying which call means which.
        one_each = len(calls) == len(self._parts) - 1
        ways: list[Arc] = []
        halts: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
        backs: defaultdict[int, list[tuple[State, State]]] = defaultdict(list)
        waiting: list[State] = []

        def place(state: State) -> int:
            if state not in self._places:
                if len(self._places) >= PLACES_MAX:
                    raise Unreadable(f"more than {PLACES_MAX} places")
                self._places[state] = len(self._places)
                waiting.append(state)
            return self._places[state]

        place(self._parts[0].start(0))
        while waiting:
            state = waiting.pop()
            source = self._places[state]
            each = self._parts[state.part].code[state.line]
            if each.name == "Program":
                called = [calls.index((state.part, state.line)) + 1] if one_each else range(1, len(self._parts))
                for part in called:
                    ways.append(Arc(source, place(self._parts[part].start(part)), STEP))
                    after = state._replace(line=state.line + 1), state._replace(line=each.p2)
                    backs[part].append(after)
                    ways += [Arc(end, place(after[ignored]), STEP) for end, ignored in halts[part]]
            if each.name == "Halt":
                if each.p1 == 0 and state.part == 0:
                    ways.append(Arc(source, 0, STEP.plus(END)))
                elif each.p1 == 0:
                    ignored = each.p2 == _IGNORE
                    halts[state.part].append((source, ignored))
                    ways += [Arc(source, place(after[ignored]), STEP) for after in backs[state.part]]
                continue  # any other Halt is an error: the walk stops there and is never finished
            if each.name in {"AutoCommit", "Savepoint"}:
                ways.append(Arc(source, 0, STEP.plus(END)))
            ways += [Arc(source, place(after), counts) for after, counts in self._parts[state.part].after(state)]
        return ways

    def _forget_leaky_sorters(self, ways: list[Arc]) -> None:
        """Takes out the balance of sorters that may be left with rows in them, as by a limit."""
        sorters: defaultdict[tuple[int, int], defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for state, place in self._places.items():
            each = self._parts[state.part].code[state.line]
            if each.name in {"SorterInsert", "SorterNext", "SorterOpen", "SorterSort", "ResetSorter"}:
                sorters[state.part, each.p1][each.name].add(place)
        out = _by_source(ways)
        leaky: set[int] = set()
        for sorter in sorters.values():
            fill, sort, drain = sorter["SorterInsert"], sorter["SorterSort"], sorter["SorterNext"]
            emptied = {0} | sorter["SorterOpen"] | sorter["ResetSorter"]
            filled = {way.target for place in fill for way in out[place]}
            taken = {way.target for place in sort | drain for way in out[place] if way.counts.unsorted}
            if _reached(out, filled, until=sort) & emptied or _reached(out, taken, until=drain) & (
                emptied | fill | sort
            ):
                leaky |= fill | sort | drain
        for number, way in enumerate(ways):
            if way.source in leaky:
                ways[number] = way._replace(counts=way.counts._replace(unsorted=0))


class _Part:
    """The main program or one sub-program: a trigger, or the action of a foreign key."""

    def __init__(self, code: Sequence[Instruction]) -> None:
        if code[0].name == "Init" and code[0].p3 > 0:
            raise Unreadable("it jumps on damaged records")
        self.code = code
        opened: defaultdict[int, set[str]] = defaultdict(set)
        registers: set[int] = set()
        for each in code:
            if each.name.startswith(("Open", "Reopen", "SorterOpen", "VOpen")):
                opened[each.p1].add(each.name)
            elif each.name in {"EndCoroutine", "Gosub", "InitCoroutine", "Return", "Yield"}:
                registers.add(each.p1)
        self._temporary = {cursor for cursor, names in opened.items() if names <= _TEMPORARY}
        yields = {register: self._yields_inside(register) for register in registers}
        self._alike = {line: lines for lines in yields.values() if len(lines) > YIELDS_MAX for line in lines}
        self._may_lack = {each.p1 for each in code if each.name == "Return" and each.p3}
        self._registers = {register: number for number, register in enumerate(sorted(registers))}

    def start(self, part: int) -> State:
        return State(part, 0, ((),) * len(self._registers))

    def lines(self, name: str) -> list[int]:
        return [line for line, each in enumerate(self.code) if each.name == name]

    def _yields_inside(self, register: int) -> tuple[int, ...]:
        begins = [self.code[line] for line in self.lines("InitCoroutine") if self.code[line].p1 == register]
        return tuple(
            line
            for line in self.lines("Yield")
            if self.code[line].p1 == register and any(begin.p3 <= line < begin.p2 for begin in begins)
        )

    def counted_roots(self) -> Iterator[tuple[int, int]]:
        """Database number and root page of each table that is counted by one instruction."""
        for cursor in {self.code[line].p1 for line in self.lines("Count")}:
            yield from ((each.p3, each.p2) for each in self.code if each.name == "OpenRead" and each.p1 == cursor)

    def after(self, state: State) -> Iterator[tuple[State, Counts]]:
        """The states an instruction may lead to, with what going there adds up to."""
        each = self.code[state.line]
        backs = state.returns[self._registers[each.p1]] if each.p1 in self._registers else ()
        here = self._alike.get(state.line, (state.line,))
        match each.name:
            case "Gosub":
                yield self._noting(state, each.p1, here, goes_to=each.p2), STEP
            case "InitCoroutine":
                yield self._noting(state, each.p1, (each.p3 - 1,), goes_to=each.p2 or state.line + 1), STEP
            case "Return" if backs:
                # An address is used once; forgetting it then keeps states few. Where it may also be missing, it is kept.
                kept = backs if each.p1 in self._may_lack else ()
                yield from ((self._noting(state, each.p1, kept, goes_to=back + 1), STEP) for back in backs)
            case "Return" if each.p3:
                yield state._replace(line=state.line + 1), STEP
            case "Yield" if backs:
                yield from ((self._noting(state, each.p1, here, goes_to=back + 1), STEP) for back in backs)
            case "EndCoroutine" if backs:
                here = (state.line - 1,)
                yield from ((self._noting(state, each.p1, here, goes_to=self.code[at].p2), STEP) for at in backs)
            case "Return" | "Yield" | "EndCoroutine":
                raise Unreadable(f"{each.name} without an address to go to")
            case "BeginSubrtn" | "Null" | "Integer":
                noted = state
                for register in self._registers:
                    if each.p2 <= register <= max(each.p2, each.p3 if each.name == "Null" else 0):
                        noted = self._noting(noted, register, (each.p1,) if each.name == "Integer" else ())
                yield noted._replace(line=state.line + 1), STEP
            case _:
                for line, counts in self._from(state.line):
                    yield state._replace(line=line), counts

    def _noting(self, state: State, register: int, lines: tuple[int, ...], *, goes_to: int | None = None) -> State:
        returns = list(state.returns)
        returns[self._registers[register]] = lines
        return State(state.part, state.line if goes_to is None else goes_to, tuple(returns))

    def _from(self, line: int) -> Iterator[tuple[int, Counts]]:
        each, after = self.code[line], line + 1
        visit, left = (STEP, STEP) if each.p1 in self._temporary else (VISIT, LEFT)
        jumped: Counts | None = STEP  # None: it never does
        went_on: Counts | None = STEP
        match each.name:
            case "Init" | "Goto":
                went_on = None
            case "Jump":
                yield each.p1, STEP
                yield each.p3, STEP
                went_on = None
            case "ResultRow":
                jumped, went_on = None, STEP.plus(Counts(rows=1))
            case "Count":
                jumped, went_on = None, STEP.plus(Counts(counted=1))
            case "Insert" | "IdxInsert":
                jumped, went_on = None, STEP.plus(Counts(changes=each.p5 & _COUNTS_A_CHANGE))
            case "Delete":
                jumped, went_on = None, STEP.plus(Counts(changes=each.p2 & _COUNTS_A_CHANGE))
            case "SorterInsert":
                jumped, went_on = None, STEP.plus(Counts(unsorted=1))
            case "SorterSort":
                went_on = STEP.plus(Counts(unsorted=-1))
            case "SorterNext":
                jumped = STEP.plus(Counts(unsorted=-1, scanned=int(each.p5 == _FULL_SCAN)))
            case "Next" | "Prev" | "VNext":
                jumped = visit.plus(Counts(scanned=int(each.p5 == _FULL_SCAN), indexed=int(each.p5 == _AUTO_INDEX)))
            case "NullRow":
                # The empty side of an outer join stands for a row that was looked for; its index and its table are one.
                jumped = None
                went_on = STEP if self.code[line - 1].name == "NullRow" else visit
            case "Filter":
                jumped, went_on = STEP.plus(Counts(stopped=1)), STEP.plus(Counts(passed=1))
            case "Found":
                jumped = visit
            case "SeekScan":
                yield self.code[after].p2, STEP
                jumped = visit
            case name if name in _REACHES:
                went_on = visit
                if name in _SEEKS and self.code[after].name in _RANGE_ENDS:
                    yield after + 1, visit  # an exact hit skips the check of the range
            case name if name in _RANGE_ENDS or self._ends_a_rowid_range(line):
                jumped = left
            case name if name in _STRAIGHT or (name not in _BRANCHES and each.p2 >= len(self.code)):
                jumped = None
        if jumped is not None and each.p2 > 0:
            yield each.p2, jumped
        if went_on is not None:
            yield after, went_on

    def _ends_a_rowid_range(self, line: int) -> bool:
        """Whether this compares the rowid just read with the end of the range and leaves the loop: no row of it."""
        each, before = self.code[line], self.code[line - 1]
        if each.name not in {"Ge", "Gt", "Le", "Lt"} or before.name != "Rowid" or before.p2 != each.p3:
            return False
        last = self.code[each.p2 - 1]
        return last.name in {"Next", "Prev"} and (last.p1, last.p2) == (before.p1, line - 1)


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


def connected(arcs: Sequence[Arc]) -> list[Arc]:
    """The arcs that lie on a closed walk from the start."""
    there = _reached(_by_source(arcs), {0}, until=set())
    back = _reached(_by_source([Arc(arc.target, arc.source, arc.counts) for arc in arcs]), {0}, until=set())
    return [arc for arc in arcs if {arc.source, arc.target} <= there & back]


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
                stops.add(Arc(place, 0, way.counts._replace(steps=0, runs=1, visits=visits, changes=counts.changes)))
                (only,) = out[target]
                target, counts = only.target, counts.plus(only.counts)
                visits = max(visits, counts.visits)
            arcs.add(Arc(place, target, counts))
    return sorted(arcs), sorted(stops)
