"""What the store-neutral half of a store runs on: named statements, a transaction, and the few things each database does
in its own way. Lives in one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from penstock.contracts.audit import Audit
from penstock.contracts.ledger import Calls, ClaimRequest
from penstock.model.message import NewMessage
from penstock.model.queue import QueueSettings
from penstock.model.usage import Measure

T = TypeVar("T")
P = ParamSpec("P")

PULLED = 0  # stands for a worker in rows that are leased to an external client; no process has this number

Bound = Mapping[str, Any]


class Session(Protocol):
    """A statement is named by its file and its name in it, such as "upkeep.sizes"."""

    worker: int
    guarded: dict[str, QueueSettings]  # queues that hold no more than so much
    audit: Audit | None  # of the operation that runs now, if an operator asked for it
    numbers_last: bool  # whether a number that was drawn is gone even if its transaction is rolled back

    def rows(self, statement: str, bound: Bound | None = None) -> list[Any]: ...
    def value(self, statement: str, bound: Bound | None = None) -> Any:
        """The first column of the only row; None where there is no row."""

    def change(self, statement: str, bound: Bound | None = None) -> int:
        """How many rows it changed."""

    def change_many(self, statement: str, bounds: Sequence[Bound]) -> None: ...
    def change_last(self, statement: str, bound: Bound) -> None:
        """Run a statement whose count of changes is not needed: it may run as late as the commit."""

    def rollback(self) -> None: ...
    def transact(self, work: Callable[[], T]) -> T:
        """A short transaction of the engine's own."""

    # -- what each database does in its own way ----------------------------------------------------------

    def numbers(self, numbers: list[int]) -> Any:
        """A list of numbers as a statement takes it."""

    def insert(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> int:
        """Many rows, each with its values in the order of the statement's columns. How many of them were not there yet;
        where some were, it may be said of none, and the transaction is to be rolled back."""

    def insert_messages(self, rows: Sequence[NewMessage]) -> int: ...

    def take(
        self, want: ClaimRequest, limit: int, priorities: Sequence[int], *, holder: int, number: int, now: int
    ) -> list[Any]:
        """Leases what is due, highest priority first; whole rows for `Delivery`, in the order they are to run."""

    def next_due(self, queue: str, now: int) -> int | None:
        """When a queue is to be looked at again: when its first row is due, or earlier."""

    def next_lapse(self, *, surely: bool) -> int | None:
        """When the first lease ends; without `surely` it may be earlier."""

    def note_number(self, number: int, now: int) -> None:
        """Record `number`, which shows afterwards whether this transaction was committed."""

    def run_calls(self, calls: Calls, measures: list[tuple[str, Measure]]) -> list[Any]:
        """Run users' statements in order, and return what each returned."""

    def lock_queue(self, queue: str) -> None:
        """Until this transaction ends, no other reads and then changes what is kept about this queue."""

    def try_lock_queue(self, queue: str) -> bool:
        """Return false if another transaction has the lock: a process that is stopped in the middle must not keep all others
        from claiming."""

    def enrolled(self, worker: int) -> None:
        """This process writes under that number: inside the transaction that gave it, so that no process sees one without the
        sign that it lives."""

    def stays_away(self, worker: int) -> bool:
        """Whether a worker that was found dead cannot come back before this transaction ends."""

    def started_in(self, worker: int) -> list[int] | None:
        """The rows that a worker, alive or dead, may have begun; None where that is unknown."""


class StoredPart:
    """One concern of a writer, on its session."""

    def __init__(self, session: Session) -> None:
        self._session = session


Part = TypeVar("Part", bound=StoredPart)


def in_transaction(method: Callable[Concatenate[Part, P], T]) -> Callable[Concatenate[Part, P], T]:
    """Make each call of a method one transaction of its session."""

    @wraps(method)
    def run(self: Part, /, *given: P.args, **named: P.kwargs) -> T:
        return self._session.transact(partial(method, self, *given, **named))

    return run
