"""From what a handler answered to a settlement in the committer, and what to do when the commit refuses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.model.errors import LeaseLost, PenstockError, StoreError
from penstock.model.message import Delivery
from penstock.model.outcome import DONE, HANDED_BACK, Again, Dead, Held, Settlement, settle
from penstock.model.retry import Retry
from penstock.runtime.slots import Slot
from penstock.runtime.unit import AwaitedUnit, Unit

if TYPE_CHECKING:
    from penstock.runtime.engine import Engine
    from penstock.runtime.worker import Worker


class BadAnswer(PenstockError):
    """The handler's answer, or its exception, cannot be used."""


class MessageUnit(Unit):
    """The unit of one delivery. Its settler hears what became of it, unless that is only what everybody expects."""

    __slots__ = ("ended", "settler", "started")
    settler: Settler
    started: float
    ended: float

    def finished(self, error: Exception | None) -> None:
        settler = self.settler
        if error is None and settler.note is not None:
            settler.note(self.delivery, self.settlement, self.started, self.ended)
        if error is not None or settler.tells:
            settler.finished(self, error)


class BatchUnit(Unit):
    """The unit of a batch: settles all its messages that did not settle in a unit of their own."""

    __slots__ = ("ended", "settler", "slot", "started")
    settler: Settler
    slot: Slot
    started: float
    ended: float

    def finished(self, error: Exception | None) -> None:
        self.settler.batch_finished(self, error)


class Settler:
    def __init__(self, worker: Worker, engine: Engine, queue: str, retry: Retry) -> None:
        self._worker = worker
        self._engine = engine
        self._queue = queue
        self._retry = retry
        self._share = engine.surroundings.random.random
        self.tells = worker.tells  # somebody wants to hear of every settlement
        self.note: Any = engine.history.settled if engine.history.is_kept else None  # called for every message

    def decide(self, delivery: Delivery, outcome: object, task: str) -> Settlement:
        """The settlement of one message; a failure is told at once."""
        if outcome is None:
            return DONE
        if isinstance(outcome, Again | Dead):
            return outcome
        try:
            settlement = settle(outcome, attempt=delivery.attempt, retry=self._retry, share=self._share())
        except Exception as error:
            # `Later("soon")`, or an exception whose text cannot be read, is a failure of the handler and not of its worker.
            outcome = BadAnswer(f"The handler's answer {_named(outcome)} is not valid: {error!r}.")
            settlement = settle(outcome, attempt=delivery.attempt, retry=self._retry)
        if isinstance(outcome, Exception):
            self._worker.tell_failure(delivery, outcome, settlement, task)
        return settlement

    def decide_unit(self, unit: Unit, outcome: object, ended: object) -> None:
        """Seals the unit of one message. What it collected goes where its handler failed, whatever was said before:
        `ended` is how the handler itself ended."""
        assert unit.delivery is not None
        settlement = self.decide(unit.delivery, outcome, unit.task)
        charged = isinstance(settlement, Again) and settlement.charged
        if charged or not keeps_effects(ended) or not keeps_effects(outcome):
            unit.discard()
        unit.settle(settlement)

    def put(self, delivery: Delivery, settlement: Settlement, task: str = "") -> None:
        """Settles a message with which nothing was done."""
        unit = MessageUnit(self._engine, delivery, task or self._queue, "")
        unit.settler = self
        unit.started = unit.ended = 0.0
        unit.closed = True
        unit.settle(settlement)
        self._engine.scheduler.put(unit)

    def give_back(self, delivery: Delivery) -> None:
        self.put(delivery, HANDED_BACK)

    async def hold(self, delivery: Delivery, seconds: float) -> None:
        """Leases anew what has not begun; `LeaseLost` if it is somebody else's by now."""
        unit = AwaitedUnit(self._engine, delivery, self._queue, "")
        unit.closed = True
        unit.settle(Held(seconds))
        self._engine.scheduler.put(unit)
        await unit.settled()

    # -- the commit is known ------------------------------------------------------------------------------

    def finished(self, unit: MessageUnit, error: Exception | None) -> None:
        """A unit that the database refused failed like its handler; a lost lease is not ours."""
        assert unit.delivery is not None
        assert unit.settlement is not None
        if error is None:
            self._worker.tell_settled(unit.delivery, unit.settlement)
        else:
            self.refused(unit.delivery, unit.task, error)

    def refused(self, delivery: Delivery, task: str, error: Exception) -> None:
        if isinstance(error, LeaseLost):
            self._worker.tell_lost(delivery)
        elif not self._is_beyond_help(error):
            self.put(delivery, self.decide(delivery, error, task), task)

    def batch_finished(self, unit: BatchUnit, error: Exception | None) -> None:
        if error is None:
            for delivery, settlement, _ in unit.settles():
                if settlement is not None:
                    self.told(delivery, settlement, unit.started, unit.ended)
        elif isinstance(error, LeaseLost):
            # One of them is not ours any more. The others are, and end one by one: again, if their work is lost with it.
            for delivery, settlement, _ in unit.settles():
                self.put(delivery, HANDED_BACK if unit.grows or settlement is None else settlement, unit.task)
        elif not self._is_beyond_help(error):
            for delivery, *_ in unit.settles():
                self.put(delivery, self.decide(delivery, error, unit.task), unit.task)

    def told(self, delivery: Delivery, settlement: Settlement, started: float, ended: float) -> None:
        """One message of a batch is settled. The times are the loop's."""
        if self.note is not None:
            self.note(delivery, settlement, started, ended)
        if self.tells:
            self._worker.tell_settled(delivery, settlement)

    def _is_beyond_help(self, error: Exception) -> bool:
        """Nothing can be written any more; the lease or the next start returns the row."""
        return isinstance(error, StoreError) and self._engine.scheduler.broken is not None


def keeps_effects(outcome: object) -> bool:
    """`Later` and `Discard` are answers, not failures: what the handler wrote before them is kept."""
    return not isinstance(outcome, Exception | Again | Dead)


def _named(answer: object) -> str:
    try:
        return repr(answer)[:200]
    except Exception:
        return f"a {type(answer).__qualname__}"
