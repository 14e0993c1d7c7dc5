"""The ledger: where units of work become one commit, and where due rows are claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from penstock.contracts.effects import Call, OnceKey, SealedUnit, UnitResult
from penstock.model.errors import PenstockError
from penstock.model.message import Delivery
from penstock.model.usage import Measure


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


class ClaimRequest(NamedTuple):
    """Room for `limit` messages of a queue, each leased for `lease_micros`. With `wait_micros` only whole batches are
    taken, until the oldest message has waited that long. `pull` leases to a client outside that names its `request`;
    `lapsing` first releases the leases of clients outside that have ended."""

    queue: str
    limit: int
    lease_micros: int
    batch: int = 1
    wait_micros: int = 0
    alone: bool = False  # no other row of the queue may be leased meanwhile
    pull: bool = False
    lapsing: bool = False
    request: str | None = None


Units = Sequence[SealedUnit]
Calls = Sequence[tuple[SealedUnit, Call]]
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
    waiting: dict[str, int] = field(default_factory=dict)  # queues that got rows, and when the first of those is due
    outcomes: list[tuple[Call, Any]] = field(default_factory=list)  # what each call of its units returned
    answers: dict[SealedUnit, UnitResult] = field(default_factory=dict)  # of the units that get one
    deaths: list[Death] = field(default_factory=list)
    next_timer: int | None = None  # known if timers were fired
    parallel: dict[str, int] = field(default_factory=dict)  # of the queues that an operator has tuned

    def answer(self, unit: SealedUnit) -> UnitResult:
        """Return what this commit answers a unit; the store fills it in."""
        return self.answers.setdefault(unit, UnitResult())


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


class WouldWait(NotCommitted):
    """Another program holds the database, and this commit was not to wait for it."""


class Ledger(Protocol):
    """Lives in one thread. Each method is one transaction."""

    def commit(self, units: Units, requests: Requests, *, now: int, sweep: bool, fire: bool = False) -> Committed:
        """Commit all units and answer all claim requests, or do nothing. With `fire` timers that are due
        become messages first.

        Raises StaleUnits, RepeatedUnits or RefusedUnits naming what to leave out, NotCommitted when the store is to blame,
        and whatever a user's statement raised.
        """

    def find_once(self, once: OnceKey) -> bytes | None:
        """The result stored under this key, if it was saved."""
