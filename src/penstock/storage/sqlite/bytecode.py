"""What a compiled statement can do: every way through its program, and what each piece of the way adds to a counter.

`EXPLAIN` lists the program. An execution is a walk through it, from the first instruction to a `Halt`; joining the end
to the beginning makes it a closed walk. SQLite tells how often some pieces of the way were gone (its counters), not how
often rows were reached; what the counters allow is worked out in `bound.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import add
from typing import Any, NamedTuple

INSTRUCTIONS_MAX = 3_000  # a longer program is not worked out: every step counts as a row


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
    SorterCompare SorterSort
    """.split()
)
# Instructions that always go on with the next one. What stands in neither list is taken to do either.
_STRAIGHT = frozenset(
    """
    Abortable Add AddImm Affinity AggFinal AggInverse AggStep AggStep1 AggValue And BeginSubrtn BitAnd BitNot BitOr
    Blob Cast Checkpoint Clear Close ClrSubtype CollSeq Column ColumnsUsed Compare Concat Copy Count CreateBtree
    CursorHint CursorLock CursorUnlock DeferredSeek Delete Destroy Divide DropIndex DropTable DropTrigger Expire
    Explain FilterAdd FinishSeek FkCheck FkCounter Function GetSubtype HaltIfNull IdxDelete IdxInsert IdxRowid Insert
    Int64 IntCopy Integer IntegrityCk IsTrue JournalMode LoadAnalysis MakeRecord MaxPgcnt MemMax Move Multiply NewRowid
    Noop Not Null NullRow Offset OffsetLimit OpenAutoindex OpenDup OpenEphemeral OpenPseudo OpenRead OpenWrite Or
    Pagecount Param ParseSchema Permutation PureFunc ReadCookie Real RealAffinity ReleaseReg Remainder ReopenIdx
    ResetCount ResetSorter ResultRow RowCell RowData RowSetAdd Rowid SCopy SeekEnd SeekHit Sequence SetCookie SetSubtype
    ShiftLeft ShiftRight SoftNull SorterData SorterInsert SorterOpen SqlExec String String8 Subtract TableLock Trace
    Transaction TypeCheck VBegin VCheck VColumn VCreate VDestroy VInitIn VOpen VRename VUpdate Vacuum Variable
    ZeroOrNull
    """.split()
)
_TEMPORARY = {"OpenEphemeral", "OpenPseudo", "SorterOpen", "OpenDup"}
_SEEKS = {"SeekGE", "SeekGT", "SeekLE", "SeekLT"}
_RANGE_ENDS = {"IdxGE", "IdxGT", "IdxLE", "IdxLT"}
_FINDS = {"NoConflict", "NotExists", "NotFound", "SeekRowid"}  # go on with the next instruction if the row is there
_FULL_SCAN, _AUTO_INDEX = 1, 3  # P5 of Next and Prev: the counter that goes up with each row
_COUNTS_A_CHANGE = 0x01
_IGNORE = 4  # P2 of the Halt that is `raise(ignore)`


class Instruction(NamedTuple):
    name: str
    p1: int
    p2: int
    p3: int
    p5: int


class Arc(NamedTuple):
    source: int
    target: int
    counts: Counts


class Unreadable(Exception):
    """The program does something this module does not know."""


class Program:
    """A listing as arcs between places. Place 0 is the start; a walk that ends goes back to it."""

    def __init__(self, listing: Sequence[tuple[Any, ...]]) -> None:
        if len(listing) > INSTRUCTIONS_MAX:
            raise Unreadable(f"{len(listing)} instructions")
        starts = [place for place, line in enumerate(listing) if line[0] == 0]
        ends = [*starts[1:], len(listing)]
        code = [Instruction(line[1], line[2], line[3], line[4], line[6]) for line in listing]
        self._parts = [_Part(start, code[start:end]) for start, end in zip(starts, ends, strict=True)]
        ways = list(self._ways())
        self.arcs = _joined(ways)
        self.ends_anywhere = _with_ends(ways)
        self.transactions = sum(each.name == "Transaction" for each in code)
        # Clear and VUpdate change rows without saying how many.
        self.tells_changes = not any(each.name in {"Clear", "VUpdate"} for each in code)
        self.counted = [root for part in self._parts for root in part.counted_roots()]

    def _ways(self) -> Iterator[Arc]:
        calls = [(part, place) for part in self._parts for place in part.named("Program")]
        # EXPLAIN lists sub-programs in the order of their first call, without saying which call means which.
        one_each = len(calls) == len(self._parts) - 1
        for number, part in enumerate(self._parts):
            if number == 0:
                returns = None
            else:
                callers = calls[number - 1 : number] if one_each else calls
                returns = [(by.start + place, by.start + by.code[place].p2) for by, place in callers]
            yield from part.ways(returns)
        for index, (part, place) in enumerate(calls):
            entered = self._parts[index + 1 : index + 2] if one_each else self._parts[1:]
            yield from (Arc(part.start + place, each.start, STEP) for each in entered)


class _Part:
    """The main program or one sub-program: a trigger, or the action of a foreign key."""

    def __init__(self, start: int, code: Sequence[Instruction]) -> None:
        self.start = start
        self.code = code
        opened = defaultdict(set)
        for each in code:
            if each.name.startswith(("Open", "Reopen", "SorterOpen", "VOpen")):
                opened[each.p1].add(each.name)
        self._temporary = {cursor for cursor, names in opened.items() if names <= _TEMPORARY}
        if code[0].name == "Init" and code[0].p3 > 0:
            raise Unreadable("jumps on a damaged record")

    def named(self, *names: str) -> list[int]:
        return [place for place, each in enumerate(self.code) if each.name in names]

    def counted_roots(self) -> Iterator[tuple[int, int]]:
        """Database number and root page of each table that is counted by one instruction."""
        for cursor in {self.code[place].p1 for place in self.named("Count")}:
            yield from ((each.p3, each.p2) for each in self.code if each.name == "OpenRead" and each.p1 == cursor)

    def ways(self, returns: list[tuple[int, int]] | None) -> Iterator[Arc]:
        """`returns`: where a sub-program goes back to: after its call, or where `raise(ignore)` leads. None: the end."""
        for place, each in enumerate(self.code):
            source = self.start + place
            if each.name in {"Halt", "AutoCommit", "Savepoint"}:
                if each.name != "Halt":
                    yield Arc(source, source + 1, STEP)
                if each.name == "Halt" and each.p1 != 0:
                    continue  # an error: the walk stops here and is not complete
                if returns is None:
                    yield Arc(source, 0, STEP.plus(END))
                else:
                    for call, ignored in returns:
                        yield Arc(source, ignored if each.p2 == _IGNORE else call + 1, STEP)
            else:
                yield from (Arc(source, self.start + to, counts) for to, counts in self._from(place, each))

    def _from(self, place: int, each: Instruction) -> Iterator[tuple[int, Counts]]:
        """The places an instruction may go to, with what going there adds up to."""
        after = place + 1
        name = each.name
        visit, left = (STEP, STEP) if each.p1 in self._temporary else (VISIT, LEFT)
        jumped: Counts | None = STEP  # None: never
        went_on: Counts | None = STEP
        match name:
            case "Init" | "Goto" | "Gosub" | "InitCoroutine":
                went_on = None if each.p2 else STEP
            case "Jump":
                yield each.p1, STEP
                yield each.p3, STEP
                went_on = None
            case "Return":
                yield from ((to, STEP) for to in self._after_calls(each.p1))
                jumped = None
                went_on = STEP if each.p3 else None
            case "Yield" | "EndCoroutine":
                yield from ((to, STEP) for to in self._after_yield(place))
                return
            case "Program":
                jumped = None  # a trigger that is already running may be skipped; the other ways are the caller's
            case "ResultRow":
                jumped, went_on = None, STEP.plus(Counts(rows=1))
            case "Count":
                jumped, went_on = None, STEP.plus(Counts(counted=1))
            case "Insert" | "IdxInsert" if each.p5 & _COUNTS_A_CHANGE:
                jumped, went_on = None, STEP.plus(Counts(changes=1))
            case "Delete" if each.p2 & _COUNTS_A_CHANGE:
                jumped, went_on = None, STEP.plus(Counts(changes=1))
            case "NullRow":
                # The empty side of an outer join stands for a row that was looked for. Its index and its table are one.
                jumped = None
                went_on = STEP if place and self.code[place - 1].name == "NullRow" else visit
            case "Rewind" | "Last" | "VFilter":
                went_on = visit
            case "Next" | "Prev" | "VNext" | "SorterNext":
                told = Counts(scanned=int(each.p5 == _FULL_SCAN), indexed=int(each.p5 == _AUTO_INDEX))
                jumped = visit.plus(told)
            case "Found":
                jumped = visit
            case "Filter":
                jumped, went_on = STEP.plus(Counts(stopped=1)), STEP.plus(Counts(passed=1))
            case _ if name in _FINDS:
                went_on = visit
            case _ if name in _SEEKS:
                went_on = visit
                if self.code[after].name in _RANGE_ENDS:
                    yield after + 1, visit  # an exact hit skips the check of the range
            case "SeekScan":
                yield self.code[after].p2, STEP
                jumped = visit
            case _ if name in _RANGE_ENDS or self._ends_a_rowid_range(place):
                jumped = left
            case _ if name in _STRAIGHT:
                jumped = None
            case _ if name not in _BRANCHES and each.p2 >= len(self.code):
                jumped = None
        if jumped is not None and each.p2 > 0:
            yield each.p2, jumped
        if went_on is not None:
            yield after, went_on

    def _after_calls(self, register: int) -> list[int]:
        calls = [place + 1 for place in self.named("Gosub") if self.code[place].p1 == register]
        kept = [self.code[place].p1 + 1 for place in self.named("Integer") if self.code[place].p2 == register]
        return calls + kept

    def _after_yield(self, place: int) -> Iterator[int]:
        """A co-routine and its caller take turns: each goes on where it last stopped."""
        register = self.code[place].p1
        begins = [self.code[each] for each in self.named("InitCoroutine") if self.code[each].p1 == register]
        yields = [each for each in self.named("Yield") if self.code[each].p1 == register]
        inside = {each for each in yields for begin in begins if begin.p3 <= each < begin.p2}
        if self.code[place].name == "EndCoroutine":
            yield from (self.code[each].p2 for each in yields if each not in inside and self.code[each].p2)
        elif place in inside:
            yield from (each + 1 for each in yields if each not in inside)
        else:
            yield from (begin.p3 for begin in begins)
            yield from (each + 1 for each in yields if each in inside or not inside)
            yield from (each for each in self.named("EndCoroutine") if self.code[each].p1 == register)

    def _ends_a_rowid_range(self, place: int) -> bool:
        """Whether this compares the rowid just read with the end of the range and leaves the loop: no row of it."""
        each, before = self.code[place], self.code[place - 1]
        if each.name not in {"Ge", "Gt", "Le", "Lt"} or before.name != "Rowid" or before.p2 != each.p3:
            return False
        last = self.code[each.p2 - 1]
        return last.name in {"Next", "Prev"} and (last.p1, last.p2) == (before.p1, place - 1)


def _joined(ways: Sequence[Arc]) -> list[Arc]:
    """The same ways with places that have only one way out drawn together, which leaves a fraction of them."""
    out = defaultdict(list)
    for way in ways:
        out[way.source].append(way)
    reached = defaultdict(int)
    for way in ways:
        reached[way.target] += 1
    kept = {0} | {place for place, count in reached.items() if count > 1}
    kept |= {way.target for several in out.values() if len(several) > 1 for way in several}
    arcs = []
    for place in sorted(kept):
        first, counts = place, Counts()
        while len(out[first]) == 1 and (only := out[first][0]).target not in kept:
            first, counts = only.target, counts.plus(only.counts)
        arcs += [Arc(place, way.target, counts.plus(way.counts)) for way in out[first]]
    return arcs


def _with_ends(ways: Sequence[Arc]) -> list[Arc]:
    """The ways of an execution that may stop anywhere: it failed, or its rows were not all fetched."""
    stops = {Arc(way.source, 0, counts.plus(END)) for way in ways for counts in (STEP, way.counts)}
    return _joined([*ways, *sorted(stops)])
