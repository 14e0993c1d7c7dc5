"""What a step knows of itself, and what becomes of one that fails."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

import msgspec

from penstock.model.errors import BudgetSpent, PenstockError
from penstock.model.outcome import Again, describe, settle
from penstock.model.retry import Retry
from penstock.model.times import from_micros, to_micros

RETRY = Retry(5, 10.0, 600.0)  # of a step that says nothing else


class Step(NamedTuple):
    """The step that is being done. `key` is the same on every attempt: give it to whatever is outside the database, so that
    it can tell a repeat. `again` tells the generations of a run apart that was restarted."""

    workflow: str
    run: str
    name: str
    again: str
    attempt: int

    @property
    def key(self) -> str:
        """The same on every try of this step: give it to services as an idempotency key."""
        return f"{self.workflow}/{self.run}/{self.name}{self.again}"


current_step: ContextVar[Step | None] = ContextVar("penstock_step", default=None)


class NotInAStep(PenstockError):
    """This is asked inside a step of a workflow, and there is none here. Call it from a function given to `run.step`."""


class StepFailed(PenstockError):
    """A step has failed for the last time."""

    name: str
    error_class: str


class StepOverBudget(StepFailed, BudgetSpent):
    """A step made a call that does not fit its budget. Sleep until `until`, then ask for a step of another name."""


class ChildFailed(StepFailed):
    """A child workflow did not complete."""


class TimedOut(PenstockError, TimeoutError):
    """No signal came in time."""


def step() -> Step:
    """The step that is being done here: its name, its attempt, and the key that is the same on every attempt."""
    found = current_step.get()
    if found is None:
        raise NotInAStep
    return found


class FailedAttempt(NamedTuple):
    """`wait_seconds` is None if it is not retried. `facts` are then kept beside the error."""

    error: str
    charged: bool
    wait_seconds: float | None
    facts: bytes | None = None
    traceback: str | None = None


def judged(error: Exception, *, attempt: int, retry: Retry, share: float) -> FailedAttempt:
    """What follows from an attempt that raised."""
    settlement = settle(error, attempt=attempt, retry=retry, share=share)
    failure = describe(error)
    text = f"{failure.error_class}: {failure.message}"
    if isinstance(error, BudgetSpent):  # what to do without money is the workflow's own decision
        until = None if error.until is None else to_micros(error.until)
        return FailedAttempt(text, True, None, msgspec.json.encode(_Spent(error.budget, until)))
    if isinstance(settlement, Again):
        return FailedAttempt(text, settlement.charged, settlement.seconds, traceback=failure.traceback)
    return FailedAttempt(text, True, None, traceback=failure.traceback)


class _Spent(msgspec.Struct):
    budget: str
    until: int | None


def failed(name: str, error: str | None, facts: bytes | None = None) -> StepFailed:
    error_class, _, message = (error or "").partition(": ")
    text = f"Step {name!r} failed: {error}"
    named: dict[str, Any] = {"name": name, "error_class": error_class, "reason": message}
    spent = msgspec.json.decode(facts or b"null", type=_Spent | None)
    if spent is None:
        return StepFailed(text, **named)
    until = None if spent.until is None else from_micros(spent.until)
    return StepOverBudget(text, budget=spent.budget, until=until, **named)


def child_failed(name: str, state: str, error: str | None) -> ChildFailed:
    said = f"Child {name!r} was {state}" if error is None else f"Child {name!r} failed: {error}"
    return ChildFailed(said, name=name, error_class=(error or state).partition(": ")[0], reason=error)
