"""The ledger: where units of work become one commit, and where due rows are claimed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple, Protocol

from penstock.contracts.audit import Audit
from penstock.contracts.items import ItemChange
from penstock.contracts.objects import SaveObject
from penstock.contracts.runs import RunChange
from penstock.contracts.timers import TimerChange
from penstock.model.allowance import Allowance
from penstock.model.errors import NotYetCommitted, PenstockError
from penstock.model.message import Delivery, NewMessage
from penstock.model.outcome import Settlement
from penstock.model.usage import Measure

Bindable = None | int | float | str | bytes


class Death(NamedTuple):
    queue: str
    id: bytes
    type: str
    source: str
    attempts: int
    reason: str
    error: str | None
    correlation_id: bytes


class Chores(NamedTuple):
    """Take back leases that have lapsed; turn timers that are due into messages."""

    sweep: bool = False
    fire: bool = False


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
        ...


class Ran(NamedTuple):
    """What one statement did inside a commit."""

    columns: tuple[str, ...]
    values: list[tuple[Any, ...]]
    changes: int
    last_row_id: int
    measure: Measure


Line = tuple[CodeType, int]  # where in the user's code a call was made: looked up only if somebody asks


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
    """A dead letter goes back to its queue under a new id. `resolution` says why: replayed, or fixed by somebody."""

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


class Also:
    """What only few units want: more rows settled, dead letters dealt with. `resolved` counts what was done of those."""

    __slots__ = ("audits", "duplicates", "items", "letters", "resolved", "saves", "settles", "timers")

    def __init__(self) -> None:
        self.settles: list[tuple[Delivery, Settlement | None]] = []  # each is part of the fence
        self.letters: list[LetterAction] = []
        self.timers: list[TimerChange] = []
        self.items: list[ItemChange] = []
        self.saves: list[SaveObject] = []  # each is part of the fence
        self.audits: list[Audit] = []
        self.resolved = 0
        self.duplicates: set[bytes] = set()  # of its sends, those that had been there before


class SealedUnit:
    """Everything one unit of work wants committed, all or nothing. Once handed to the ledger it does not change."""

    __slots__ = (
        "also",
        "calls",
        "committed",
        "delivery",
        "once",
        "once_result",
        "repeated",
        "runs",
        "sends",
        "settlement",
        "stops",
        "task",
    )

    def __init__(self, delivery: Delivery | None, task: str) -> None:
        self.delivery = delivery  # the fence: the unit commits only while this delivery is still ours
        self.task = task
        self.also: Also | None = None
        self.settlement: Settlement | None = None
        self.calls: list[Call] = []
        self.sends: list[NewMessage] = []
        self.runs: list[RunChange] | None = None  # what becomes of runs of workflows
        self.stops = False  # somebody wants what runs here to stop at its next step
        self.once: OnceKey | None = None
        self.once_result = b"null"
        self.committed = False
        self.repeated = False  # its key was saved before: what it collected is dropped

    def finished(self, error: Exception | None) -> None:
        """Told exactly once what became of the unit, on the event loop."""

    @property
    def grows(self) -> bool:
        """Whether it adds to the database, rather than only settling what is there."""
        also = self.also
        more = also is not None and (also.letters or also.saves)
        return bool(self.calls or self.sends or self.runs or self.once or more)

    def fence(self) -> Iterator[tuple[Delivery, Settlement | None]]:
        """Every row of its fence, and what becomes of it."""
        if self.delivery is not None:
            yield self.delivery, self.settlement
        if self.also is not None:
            yield from self.also.settles


class ClaimRequest(NamedTuple):
    """Room for so many messages of a queue, each leased for so long. With `wait_micros` only whole batches are taken, until
    the oldest message has waited that long. `pull` leases to somebody outside who names his `request`; `lapsing` first
    takes back what others outside have held for too long."""

    queue: str
    limit: int
    lease_micros: int
    batch: int = 1
    wait_micros: int = 0
    alone: bool = False  # no other row of the queue may be held by anybody meanwhile
    pull: bool = False
    lapsing: bool = False
    request: str | None = None


Units = Sequence[SealedUnit]
Requests = Sequence[ClaimRequest]


@dataclass(slots=True)
class Committed:
    """What a group commit did."""

    number: int
    claimed: list[Delivery] = field(default_factory=list)
    claimed_at: int = 0  # from when their leases count
    next_due: dict[str, int | None] = field(default_factory=dict)  # per queue that gave less than was wanted
    swept: int = 0  # rows whose lease had lapsed and that wait again
    is_empty: bool = False  # nothing was claimed, swept, sent or settled
    next_lapse: int | None = None  # known if anything was claimed or swept
    measures: list[tuple[str, Measure]] = field(default_factory=list)
    waiting: dict[str, int] = field(default_factory=dict)  # queues the store itself gave rows to, and when they are due
    deaths: list[Death] = field(default_factory=list)
    next_timer: int | None = None  # known if timers were fired
    parallel: dict[str, int] = field(default_factory=dict)  # of the queues that an operator has tuned


class StaleUnits(PenstockError):
    """Some units of the group have lost their fence; nothing was committed."""

    stale: list[SealedUnit]


class RepeatedUnits(PenstockError):
    """Some units of the group carry a key that was saved before; nothing was committed."""

    repeated: list[SealedUnit]


class RefusedUnits(PenstockError):
    """Some units of the group send more than their queues hold; nothing was committed."""

    refused: list[tuple[SealedUnit, Exception]]


class NotCommitted(PenstockError):
    """The commit failed for a reason of the store, and it is certain that nothing of it was saved."""


class Ledger(Protocol):
    """Lives in one thread. Each method is one transaction."""

    def commit(self, units: Units, requests: Requests, *, now: int, sweep: bool, fire: bool = False) -> Committed:
        """Commit all units and answer all claim requests, or do nothing. With `fire` timers that are due
        become messages first.

        Raises StaleUnits, RepeatedUnits or RefusedUnits naming what to leave out, NotCommitted when the store is to blame,
        and whatever a user's statement raised.
        """
        ...

    def find_once(self, once: OnceKey) -> bytes | None:
        """The result stored under this key, if it was saved."""
        ...
