"""What SQLite's instructions do: where each may lead, and what going there adds to the counters.

Only what matters for the way is known here: jumps, subroutines, co-routines and flags, and which instruction reaches a
row. A program with an instruction that is not known here is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import add
from typing import NamedTuple

YIELDS_MAX = 8  # of a co-routine that are told apart; a long list of values has one for each row


class Counts(NamedTuple):
    """What a piece of the way adds up to. From `steps` to `stopped` SQLite counts it itself."""

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
    kept: int = 0  # rows put into temporary tables less rows deleted from them: never less than nothing

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
# Instructions that always go on with the next one.
_STRAIGHT = frozenset(
    """
    Abortable Add AddImm Affinity AggFinal AggInverse AggStep AggStep1 AggValue And AutoCommit BeginSubrtn BitAnd
    BitNot BitOr Blob Cast Checkpoint Clear Close ClrSubtype CollSeq Column ColumnsUsed Compare Concat Copy Count CreateBtree
    CursorHint CursorLock CursorUnlock DeferredSeek Delete Destroy Divide DropIndex DropTable DropTrigger Expire
    Explain FilterAdd FinishSeek FkCheck FkCounter Function GetSubtype HaltIfNull IdxDelete IdxInsert IdxRowid Insert
    Int64 IntCopy Integer IntegrityCk IsTrue JournalMode LoadAnalysis MakeRecord MaxPgcnt MemMax Move Multiply NewRowid
    Noop Not Null NullRow Offset OffsetLimit OpenAutoindex OpenDup OpenEphemeral OpenPseudo OpenRead OpenWrite Or
    Pagecount Param ParseSchema Permutation Program PureFunc ReadCookie Real RealAffinity ReleaseReg Remainder ReopenIdx
    ResetCount ResetSorter ResultRow RowCell RowData RowSetAdd Rowid SCopy Savepoint SeekEnd SeekHit Sequence SetCookie
    SetSubtype ShiftLeft ShiftRight SoftNull SorterData SorterOpen SqlExec String String8 Subtract TableLock Trace
    Transaction TypeCheck VBegin VCheck VColumn VCreate VDestroy VInitIn VOpen VRename VUpdate Vacuum Variable
    ZeroOrNull
    """.split()
)
# Instructions that write the register P1, P2 or P3; Integer is not among them.
_WRITES_P1 = frozenset(
    "AddImm Affinity AggFinal Cast DecrJumpZero IfNotZero MemMax MustBeInt RealAffinity SoftNull".split()
)
_WRITES_P2 = frozenset(
    """
    BeginSubrtn BitNot Blob Copy Count CreateBtree GetSubtype IdxRowid Int64 IntCopy IsTrue JournalMode MaxPgcnt
    Move NewRowid Not Null OffsetLimit Pagecount Param ReadCookie Real RowData Rowid SCopy Sequence SetSubtype SorterData
    String String8 VCheck VInitIn Variable ZeroOrNull
    """.split()
)
_WRITES_P3 = frozenset(
    """
    Add AggInverse AggStep AggStep1 AggValue And BitAnd BitOr Clear Column Concat Destroy Divide Function IfNullRow
    MakeRecord Multiply NewRowid Offset Or Program PureFunc Remainder RowSetRead ShiftLeft ShiftRight Subtract VColumn
    """.split()
)
_SETS = frozenset({"BeginSubrtn", "Integer", "Null"})
# Of the straight ones, those that nothing has to be known about.
_PLAIN = (
    _STRAIGHT
    - _SETS
    - frozenset("AutoCommit Count Delete IdxInsert Insert NullRow Program ResultRow Savepoint".split())
)
_TEMPORARY = {"OpenEphemeral", "OpenPseudo", "SorterOpen", "OpenDup"}
_SEEKS = {"SeekGE", "SeekGT", "SeekLE", "SeekLT"}
_RANGE_ENDS = {"IdxGE", "IdxGT", "IdxLE", "IdxLT"}
# These go on with the next instruction where they reached a row.
_REACHES = _SEEKS | {"Last", "NoConflict", "NotExists", "NotFound", "Rewind", "SeekRowid", "VFilter"}
_FULL_SCAN, _AUTO_INDEX = 1, 3  # P5 of Next and Prev: the counter that goes up with each row
_COUNTS_A_CHANGE = 0x01
IGNORE = 4  # P2 of the Halt that is `raise(ignore)`


class Instruction(NamedTuple):
    name: str
    p1: int
    p2: int
    p3: int
    p5: int


class State(NamedTuple):
    """Where a walk is: the part, the instruction, after which lines each subroutine and co-routine may go on, flags."""

    part: int
    line: int
    registers: tuple[tuple[int, ...], ...]


class Unreadable(Exception):
    """The program is too long, or does something this module does not know."""


class Part:
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
        self._flags = self._found_flags()
        registers |= self._flags
        yields = {register: self._yields_inside(register) for register in registers}
        self._alike = {line: lines for lines in yields.values() if len(lines) > YIELDS_MAX for line in lines}
        self._may_lack = {each.p1 for each in code if each.name == "Return" and each.p3}
        self._registers = {register: number for number, register in enumerate(sorted(registers))}
        self._plain = self._plain_runs()

    def _found_flags(self) -> set[int]:
        """Registers that are tested and set only: whether a group or an outer join found a row, or a limit was reached."""
        tested = {each.p1 for each in self.code if each.name == "IfPos" and each.p3 == 0}
        written = {each.p1 for each in self.code if each.name in _WRITES_P1 or (each.name == "IfPos" and each.p3)}
        written |= {each.p2 for each in self.code if each.name in _WRITES_P2}
        written |= {each.p3 for each in self.code if each.name in _WRITES_P3}
        for each in self.code:
            if each.name in {"Copy", "Move", "Null"}:
                written |= set(range(each.p2, each.p2 + each.p3 + 1))
        set_to = {each.p2 for each in self.code if each.name == "Integer" and each.p1 in {0, 1}}
        return tested & set_to - written

    def _plain_runs(self) -> list[int]:
        """For each line, how many instructions from there on only go on with the next one: most of a program."""
        runs = [0] * (len(self.code) + 1)
        for line in range(len(self.code) - 1, -1, -1):
            each = self.code[line]
            plain = each.name in _PLAIN or (each.name in _SETS and not self._set_by(each))
            runs[line] = runs[line + 1] + 1 if plain else 0
        return runs

    def _set_by(self, each: Instruction) -> list[int]:
        last = each.p3 if each.name == "Null" else each.p2
        return [register for register in self._registers if each.p2 <= register <= max(each.p2, last)]

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
        """The states an instruction may lead to, with what going there adds to the counters."""
        if run := self._plain[state.line]:
            yield state._replace(line=state.line + run), Counts(steps=run)
            return
        each = self.code[state.line]
        backs = state.registers[self._registers[each.p1]] if each.p1 in self._registers else ()
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
            case "IfPos" if backs and each.p1 in self._flags:
                yield state._replace(line=each.p2 if backs[0] > 0 else state.line + 1), STEP
            case "BeginSubrtn" | "Null" | "Integer":
                noted = state
                for register in self._set_by(each):
                    noted = self._noting(noted, register, (each.p1,) if each.name == "Integer" else ())
                yield noted._replace(line=state.line + 1), STEP
            case _:
                for line, counts in self._from(state.line):
                    yield state._replace(line=line), counts

    def _noting(self, state: State, register: int, lines: tuple[int, ...], *, goes_to: int | None = None) -> State:
        registers = list(state.registers)
        registers[self._registers[register]] = lines
        return State(state.part, state.line if goes_to is None else goes_to, tuple(registers))

    def _from(self, line: int) -> Iterator[tuple[int, Counts]]:
        each, after = self.code[line], line + 1
        temporary = int(each.p1 in self._temporary)
        visit, left = (STEP, STEP) if temporary else (VISIT, LEFT)
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
                jumped, went_on = None, STEP.plus(Counts(changes=each.p5 & _COUNTS_A_CHANGE, kept=temporary))
            case "Delete":
                jumped, went_on = None, STEP.plus(Counts(changes=each.p2 & _COUNTS_A_CHANGE, kept=-temporary))
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
            case name if name in _STRAIGHT:
                jumped = None
            case name if name not in _BRANCHES:
                raise Unreadable(f"nothing is known about {name}")
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
