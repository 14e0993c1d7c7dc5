"""Effects and fences: what a unit of work changes when it commits, and on what condition it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import Any, NamedTuple, Protocol

from penstock.contracts.audit import Audit
from penstock.contracts.items import DropItems, ItemChange, NoteItem
from penstock.contracts.objects import SaveObject
from penstock.contracts.runs import RunChange
from penstock.contracts.timers import TickNote, TimerChange
from penstock.model.allowance import Allowance
from penstock.model.errors import NotYetCommitted
from penstock.model.message import Delivery, NewMessage
from penstock.model.outcome import Settlement
from penstock.model.usage import Measure

Bindable = None | int | float | str | bytes


class Transaction(Protocol):
    """What a function given to `atomically` works with: reads and writes inside the commit itself."""

    def rows(self, sql: str, given: object = None, /, **named: object) -> list[Any]: ...
    def first(self, sql: str, given: object = None, /, **named: object) -> Any: ...
    def value(self, sql: str, given: object = None, /, **named: object) -> Any: ...
    def column(self, sql: str, given: object = None, /, **named: object) -> list[Any]: ...
    def write(self, sql: str, given: object = None, /, **named: object) -> int: ...
    def run(self, sql: str, bound: dict[str, Bindable], allowance: Allowance) -> Ran:
        """Run one statement of an HTTP client, which reaches none of the engine's tables. Raises BadStatement where the
        store takes no statements from clients."""


class Ran(NamedTuple):
    """What one statement did inside a commit."""

    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]
    changes: int
    last_row_id: int
    measure: Measure


Line = tuple[CodeType, int]  # where in the user's code a call was made: looked up only for an error message


def where(line: Line) -> str:
    """The file and line of a call."""
    code, instruction = line
    found = next((number for start, end, number in code.co_lines() if start <= instruction < end), None)
    return f"{code.co_filename}:{found or code.co_firstlineno}"


class Joined:
    """A call that joined a unit, and the handle to what came of it once the unit has committed."""

    __slots__ = ("_outcome", "_unit", "line")

    def __init__(self, unit: SealedUnit, line: Line) -> None:
        self._unit = unit
        self._outcome: Any = 0
        self.line = line

    def note(self, outcome: object) -> None:
        self._outcome = outcome

    def _known(self) -> Any:
        if not self._unit.committed:
            raise NotYetCommitted
        return self._outcome


class Write(Joined):
    """One statement of a unit."""

    __slots__ = ("expect", "parameters", "sql")

    def __init__(
        self, unit: SealedUnit, sql: str, parameters: dict[str, Bindable], expect: int | None, line: Line
    ) -> None:
        # Spelt out instead of calling up: one of these is made for every write.
        self._unit = unit
        self._outcome = 0
        self.line = line
        self.sql = sql
        self.parameters = parameters
        self.expect = expect

    @property
    def changes(self) -> int:
        """How many rows it changed. Known once its unit has committed."""
        return int(self._known())


class WriteMany(Joined):
    """One statement run for many rows; counts as one call of its unit."""

    __slots__ = ("rows", "sql")

    def __init__(self, unit: SealedUnit, sql: str, rows: list[dict[str, Bindable]], line: Line) -> None:
        super().__init__(unit, line)
        self.sql = sql
        self.rows = rows

    @property
    def changes(self) -> int:
        """How many rows it changed altogether. Known once its unit has committed."""
        return int(self._known())


class Atomic(Joined):
    """A function run inside the commit. It may run more than once; only the last run counts."""

    __slots__ = ("function",)

    def __init__(self, unit: SealedUnit, function: Callable[[Transaction], object], line: Line) -> None:
        super().__init__(unit, line)
        self.function = function

    @property
    def result(self) -> Any:
        """What the function returned. Known once its unit has committed."""
        return self._known()


Call = Write | WriteMany | Atomic


class OnceKey(NamedTuple):
    """Names a piece of work that is saved at most once: `scope` is the consumed message, or empty outside one."""

    scope: bytes
    key: str


class Replay(NamedTuple):
    """A dead letter goes back to its queue under a new id. `resolution` says why: replayed, or fixed by an operator."""

    letter: int
    due: int
    resolution: str = "replayed"
    body: bytes | None = None  # another body than it died with
    flags: int = 0  # added to its own


class Resolve(NamedTuple):
    """A dead letter is dealt with and stays where it is."""

    letter: int
    resolution: str
    note: str


class Edit(NamedTuple):
    """A dead letter gets another body, to be replayed with."""

    letter: int
    body: bytes


LetterAction = Replay | Resolve | Edit


class Once(NamedTuple):
    """The unit commits only where its key is new, and saves this result under it."""

    key: OnceKey
    result: bytes = b"null"


class Settle(NamedTuple):
    """The unit commits only while this delivery is still ours, and settles it; None leaves it as it is. `rounds` is 1 where
    a message asks for time and keeps what it did: what its next execution sends is new."""

    delivery: Delivery
    settlement: Settlement | None = None
    rounds: int = 0


Fence = Settle | SaveObject | Once
Effect = Call | NewMessage | RunChange | TimerChange | ItemChange | LetterAction | Audit
NOTES = (TickNote, NoteItem, DropItems, Audit)  # what the engine notes about work, whatever becomes of it


class UnitResult:
    """What the commit of a unit brought it, beside what its calls returned."""

    __slots__ = ("duplicates", "letters", "stops")

    def __init__(self) -> None:
        self.duplicates: set[bytes] = set()  # ids of its sends that had been there before
        self.letters = 0  # dead letters that it dealt with
        self.stops = False  # an operator wants its run to stop at the next step


NO_ANSWER = UnitResult()


class SealedUnit:
    """Everything one unit of work wants committed, all or nothing. Once handed to the ledger it does not change."""

    __slots__ = ("answer", "committed", "effects", "fences", "repeated", "task")

    def __init__(self, task: str, fences: Iterable[Fence] = ()) -> None:
        self.task = task
        self.fences: list[Fence] = list(fences)  # it commits only if every one holds
        self.effects: list[Effect] = []
        self.answer = NO_ANSWER
        self.committed = False
        self.repeated = False  # its key was saved before: what it collected is dropped

    def finished(self, error: Exception | None) -> None:
        """Called exactly once with the unit's result, on the event loop."""

    @property
    def grows(self) -> bool:
        """Whether it adds to the database, rather than only settling what is there."""
        return any(not isinstance(effect, NOTES) for effect in self.effects) or any(
            type(fence) is not Settle for fence in self.fences
        )

    def sends(self) -> list[NewMessage]:
        return [effect for effect in self.effects if isinstance(effect, NewMessage)]

    def settles(self) -> Iterator[Settle]:
        """The deliveries of its fence."""
        return (fence for fence in self.fences if type(fence) is Settle)
