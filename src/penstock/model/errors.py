"""Every failure Penstock raises, with its facts as attributes and the way out in its message."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any


class PenstockError(Exception):
    """Something in Penstock went wrong."""

    def __init__(self, message: str | None = None, /, **facts: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.facts = facts
        for name, value in facts.items():
            setattr(self, name, value)
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message


# -- what a handler may raise about the outside world ------------------------------------------------


class _Delayed(PenstockError):
    def __init__(
        self, message: str | None = None, /, *, retry_after: float | timedelta | None = None, **facts: Any
    ) -> None:
        retry_after = retry_after.total_seconds() if isinstance(retry_after, timedelta) else retry_after
        self.retry_after: float | None = retry_after
        super().__init__(message, retry_after=retry_after, **facts)


class Throttled(_Delayed):
    """The service asked us to slow down. The message waits and loses no attempt."""


class Unavailable(_Delayed):
    """The service is down for now. The message waits and loses no attempt."""


class BudgetSpent(_Delayed):
    """The call does not fit its budget, and was not made. The message waits until the budget is renewed and loses no
    attempt; one whose budget never does becomes a dead letter."""

    budget: str  # run, day or month
    until: datetime | None


class Permanent(PenstockError):
    """Trying again cannot help. The message becomes a dead letter at once."""


class Gone(Permanent):
    """The thing is no longer there. Trying again cannot help."""


class Refused(Permanent):
    """The service refused this request for good. Trying again cannot help."""


class Unparsable(Permanent):
    """The answer has a shape we do not know. Trying again cannot help."""


# -- the unit of work ---------------------------------------------------------------------------------


class NoUnit(PenstockError):
    """This call joins a unit of work and there is none here. Wrap it in `async with app.unit():`."""


class UnitClosed(PenstockError):
    """The unit of work has already settled. Finish everything it should save before the handler returns."""


class UnitTooLarge(PenstockError):
    """A unit of work has at most 1,000 calls and 4 MB. Use `db.write_many`, or commit earlier with `app.unit`."""


class NotYetCommitted(PenstockError):
    """What a call changed is known only after its unit has committed. Use `db.atomically` to know it earlier."""


class LeaseLost(PenstockError):
    """Another worker took this message over, and nothing was saved. Raise the queue's wall limit or shorten the handler."""


class HandlerExit(PenstockError):
    """A handler raised an exit such as SystemExit. It counts as a failure: a handler cannot stop its worker."""


class LostUpdate(PenstockError):
    """A write with `expect=` changed another number of rows, and nothing of its unit was saved."""


class BetweenSteps(PenstockError):
    """Between the steps of a workflow nothing is saved. Write, send and start inside a step: `run.step("save", ...)`."""


class Reentrant(PenstockError):
    """A chain of calls came back to an object it is already inside."""


# -- queues -------------------------------------------------------------------------------------------


class QueueFull(PenstockError):
    """The queue holds as much as it may. Wait for its consumer, or raise its limit."""

    queue: str
    retry_after: float


class NoSuchQueue(PenstockError):
    """There is no queue of this name."""


class BadLease(PenstockError):
    """This is not the id of a lease."""


class NoSuchLetter(PenstockError):
    """There is no such dead letter, or it has been dealt with."""


class NoSuchController(PenstockError):
    """There is no controller of this name."""


class BadSignal(PenstockError):
    """The payload of a signal does not fit what the run waits for. Nothing was saved; the run still waits."""


class NoSuchRun(PenstockError):
    """There is no run of this id."""


class NoSuchSchedule(PenstockError):
    """There is no cron task of this name."""


class NoSuchSource(PenstockError):
    """There is no source of this name."""


class LoopBroken(Permanent):
    """A message came round too often with the same type and payload and without a delay. Break the loop."""


class TooLarge(PenstockError):
    """The value is larger than its limit. Store it and send a reference to it."""


class BadMessage(PenstockError):
    """The message does not fit its queue, and nothing was sent."""


class HttpError(PenstockError):
    """A route answers with this status, and nothing of its unit is saved: `raise ps.HttpError(404, "No such note.")`."""

    def __init__(self, status: int, message: str, /, *, name: str = "", **facts: Any) -> None:
        """`name` is the error's name for programs; a fact `field` names the part of the request that is wrong."""
        if not 400 <= status <= 599:
            raise BadApp(f"HttpError: status is {status}; give 400 to 599.", status=status)
        self.status, self.name = status, name or f"http_{status}"
        super().__init__(message, **facts)


# -- the user's database ------------------------------------------------------------------------------


class BadStatement(PenstockError):
    """The SQL cannot run inside a unit of work."""


class BadParameter(PenstockError):
    """A bound value does not fit the statement."""


class StatementFailed(PenstockError):
    """The database refused a statement, and nothing of its unit was saved."""


class TooManyRows(PenstockError):
    """The query gave more rows than one read may hold. Use `db.pages` or a LIMIT."""


class BadMigration(PenstockError):
    """A migration cannot be applied, and nothing was changed."""


# -- the store ----------------------------------------------------------------------------------------


class StoreError(PenstockError):
    """The database cannot be used."""


class StoreUnavailable(StoreError):
    """The database cannot be reached now."""


class StoreReplaced(StoreError):
    """The database file was deleted or replaced while it was open; nothing more is saved to it."""


class StorageFull(StoreError):
    """The disk is full: nothing was saved. Free some space; settling continues from a reserve."""


class StoreCorrupt(StoreError):
    """The database file is damaged. Restore the last backup."""


class SchemaTooNew(StoreError):
    """The database was written by a newer Penstock. Upgrade this one."""


class SchemaTooOld(StoreError):
    """The database was written by a Penstock too old to read. Upgrade in smaller steps."""


# -- set-up -------------------------------------------------------------------------------------------


class BadConfig(PenstockError):
    """The configuration has a value that does not fit."""


class BadApp(PenstockError):
    """The app is put together in a way that cannot run."""
