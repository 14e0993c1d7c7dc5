"""What the store-neutral half of a store runs on: named statements, a transaction, and the few things each database does
in its own way. Lives in one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from penstock.contracts.ledger import SealedUnit, Want
from penstock.model.message import NewMessage
from penstock.model.queue import QueueSettings
from penstock.model.usage import Measure

T = TypeVar("T")

PULLED = 0  # stands for a worker in rows that are leased to somebody outside; no process has this number

Bound = Mapping[str, Any]


class Session(Protocol):
    """A statement is named by its file and its name in it, such as "dead.bury"."""

    worker: int
    guarded: dict[str, QueueSettings]  # queues that hold no more than so much
    numbers_last: bool  # whether a number that was drawn is gone even if its transaction is rolled back

    def rows(self, statement: str, bound: Bound | None = None) -> list[Any]: ...
    def value(self, statement: str, bound: Bound | None = None) -> Any:
        """The first column of the only row; None where there is no row."""
        ...

    def change(self, statement: str, bound: Bound | None = None) -> int:
        """How many rows it changed."""
        ...

    def change_many(self, statement: str, bounds: Sequence[Bound]) -> None: ...
    def rollback(self) -> None: ...
    def transact(self, work: Callable[[], T]) -> T:
        """A short transaction of the engine's own."""
        ...

    # -- what each database does in its own way ----------------------------------------------------------

    def numbers(self, numbers: list[int]) -> Any:
        """A list of numbers as a statement takes it."""
        ...

    def insert_messages(self, rows: Sequence[NewMessage]) -> int:
        """How many of them were not there yet."""
        ...

    def take(
        self, want: Want, limit: int, priorities: Sequence[int], *, holder: int, number: int, now: int
    ) -> list[Any]:
        """Leases what is due, highest priority first; whole rows for `Delivery`, in the order they are to run."""
        ...

    def run_calls(self, units: Sequence[SealedUnit], measures: list[tuple[str, Measure]]) -> None:
        """Runs users' statements."""
        ...

    def lock_queue(self, queue: str) -> None:
        """Until this transaction ends, nobody else reads and then changes what is kept about this queue."""
        ...

    def started_in(self, worker: int) -> list[int] | None:
        """The rows that a worker, alive or dead, may have begun; None where nobody can tell."""
        ...
