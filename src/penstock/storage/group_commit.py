"""What one group commit does, from its fence to its claims, inside a transaction that is already open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.contracts.audit import Audit
from penstock.contracts.effects import (
    Atomic,
    Call,
    Edit,
    LetterAction,
    Once,
    OnceKey,
    Replay,
    Resolve,
    SealedUnit,
    Settle,
    Write,
    WriteMany,
)
from penstock.contracts.faults import Faults
from penstock.contracts.items import DropItems, ItemChange, NoteItem
from penstock.contracts.ledger import Chores, Committed, RepeatedUnits, Requests, StaleUnits, Units
from penstock.contracts.objects import SaveObject
from penstock.contracts.runs import RunChange
from penstock.contracts.timers import ClearTimer, SetTimer, TickNote, TimerChange
from penstock.model.errors import PenstockError
from penstock.model.message import KEYED, PAUSING, Delivery, NewMessage
from penstock.model.outcome import DONE, Again, Dead, Held, Settlement, Split
from penstock.storage.audit import look, note_unit
from penstock.storage.claims import Claimer
from penstock.storage.dead_letters import apply_action, settle_failure, split
from penstock.storage.items import change_items
from penstock.storage.objects import is_owned, save
from penstock.storage.sends import send
from penstock.storage.session import Session
from penstock.storage.tally import ACKED, Tally
from penstock.storage.timers import change_timers, fire_due, next_timer
from penstock.storage.workflow_runs import change_runs


class SameKey(PenstockError):
    """A group that has to be divided."""


class GroupCommit:
    def __init__(self, session: Session, faults: Faults) -> None:
        self._session = session
        self._at = faults.at
        self._claimer = Claimer(session)

    def find_once(self, once: OnceKey) -> bytes | None:
        saved = self._session.value("ledger.find_once", once._asdict())
        return None if saved is None else bytes(saved)

    def apply(self, units: Units, requests: Requests, chores: Chores, *, now: int, careful: bool) -> Committed:
        """Does everything but the commit. A look that found nothing is marked as empty."""
        session = self._session
        # A mere look leaves no trace for others to look at: where a number would be one, it is drawn by what is found.
        looks = session.numbers_last and not (units or any(chores) or any(request.lapsing for request in requests))
        number = 0 if looks else session.value("ledger.next_number")
        committed = Committed(number)
        self._at("commit.begun")
        tally, group = Tally(), sort(units)
        before = [look(session, audit) for _, audit in group.audits]
        self._settle(units, group, committed, tally, now)
        self._at("commit.settled")
        if group.calls:
            outcomes = session.run_calls(group.calls, committed.measures)
            committed.outcomes = [(call, outcome) for (_, call), outcome in zip(group.calls, outcomes, strict=True)]
        self._at("commit.written")
        if group.sends:
            send(session, units, group.sends, committed, tally, careful=careful, now=now)
        if group.runs:
            change_runs(session, group.runs, tally, careful=careful, now=now)
        if group.items:
            change_items(session, group.items)
        if group.timers:
            change_timers(session, group.timers, tally, committed.measures)
        self._at("commit.sent")
        for (unit, audit), state in zip(group.audits, before, strict=True):
            note_unit(session, audit, state, unit, committed)
        if chores.sweep:
            committed.swept = self._claimer.sweep(number, now, tally)
        if chores.fire:
            fire_due(session, tally, number=number, now=now)
            committed.next_timer = next_timer(session)
            self._at("commit.fired")
        if requests:
            self._claimer.claim(requests, committed, tally, now)
            self._at("commit.claimed")
        if requests or chores.sweep:
            in_vain = now if chores.sweep and not committed.swept else None
            committed.next_lapse = self._claimer.next_lapse(swept=chores.sweep, in_vain=in_vain)
        committed.is_empty = not (committed.claimed or committed.swept or tally.by_queue)
        tally.save(session)
        tally.tell(committed)
        if committed.is_empty and not units:
            return committed
        committed.number = committed.number or session.value("ledger.next_number")
        session.note_number(committed.number, now)
        return committed

    # -- the fence and the settlements ------------------------------------------------------------

    def _settle(self, units: Units, group: GroupEffects, committed: Committed, tally: Tally, now: int) -> None:
        session = self._session
        for unit, action in group.letters:
            committed.answer(unit).letters += apply_action(session, action, tally, now=now)
        held = all(save(session, wanted, now) for wanted in group.saves)
        if group.keys:
            self._save_once(group.keys, now)
        held = held and all(self._still_held(units, token, rows, committed) for token, rows in group.kept.items())
        for token, deliveries in group.done.items():
            rows = [delivery.seq for delivery in deliveries]
            if came_back := [delivery.seq for delivery in deliveries if delivery.flags & KEYED]:
                session.change("ledger.note_processed", {"seqs": session.numbers(came_back), "now": now})
            held = session.change("ledger.settle_done", self._fence(token, rows)) == len(rows) and held
            tally.bulk(deliveries, ACKED)
        for fence in group.settled:
            held = held and self._settle_one(*fence, tally, committed.number, now)
        if not held:
            self._name_the_stale(units)

    def _still_held(self, units: Units, token: int, rows: list[int], committed: Committed) -> bool:
        """The unit of a row that an operator wants stopped learns it with this commit."""
        asked = {**self._fence(token, rows), "pausing": PAUSING}
        ((count, pausing),) = self._session.rows("ledger.still_held", asked)
        if pausing:
            bound = {"seqs": self._session.numbers(rows), "pausing": PAUSING}
            stopping = {seq for (seq,) in self._session.rows("ledger.to_stop", bound)}
            for unit in units:
                if any(fence.delivery.seq in stopping for fence in unit.settles()):
                    committed.answer(unit).stops = True
        return bool(count == len(set(rows)))

    def _settle_one(
        self, delivery: Delivery, settlement: Settlement | None, rounds: int, tally: Tally, number: int, now: int
    ) -> bool:
        if isinstance(settlement, Held):
            due = now + int(settlement.seconds * 1_000_000)
            return self._session.change("ledger.hold", {"seq": delivery.seq, "token": delivery.token, "due": due}) == 1
        session = self._session
        if isinstance(settlement, Split):
            return split(session, delivery.seq, delivery.token, settlement.handlers, tally, now=now)
        assert isinstance(settlement, Again | Dead)
        if isinstance(settlement, Again):
            tally.waits(delivery.queue, now + int(settlement.seconds * 1_000_000))
        return settle_failure(
            session, delivery.seq, delivery.token, settlement, tally, now=now, number=number, rounds=rounds
        )

    def _name_the_stale(self, units: Units) -> None:
        """Roll back first: rows that the group deleted must exist again, to differ from rows that others took."""
        self._session.rollback()
        stale = [
            unit
            for unit in units
            if not all(self._is_held(fence.delivery) for fence in unit.settles())
            or not all(is_owned(self._session, fence) for fence in unit.fences if isinstance(fence, SaveObject))
        ]
        assert stale, "a fence failed although every row is still held: one delivery was settled twice"
        raise StaleUnits(stale=stale)

    def _is_held(self, delivery: Delivery) -> bool:
        return self._session.value("ledger.held_one", {"seq": delivery.seq, "token": delivery.token}) is not None

    def _save_once(self, keys: Sequence[tuple[SealedUnit, Once]], now: int) -> None:
        repeated = [unit for unit, once in keys if self.find_once(once.key) is not None]
        if repeated:
            raise RepeatedUnits(repeated=repeated)
        if len({once.key for _, once in keys}) < len(keys):
            raise SameKey("Two units of a group carry one key: the second is tried after the first.")
        for _, once in keys:
            self._session.change("ledger.save_once", {**once.key._asdict(), "result": once.result, "now": now})

    def _fence(self, token: int, rows: list[int]) -> dict[str, Any]:
        return {"token": token, "seqs": self._session.numbers(rows)}


# -- what the units of a group want, by kind ----------------------------------------------------------------------


@dataclass(slots=True)
class GroupEffects:
    """Each list is in the order of the units. Deliveries are by token: those of one claim share it."""

    done: dict[int, list[Delivery]] = field(default_factory=dict)
    kept: dict[int, list[int]] = field(default_factory=dict)  # numbers of rows that stay as they are
    settled: list[Settle] = field(default_factory=list)  # in another way than done
    saves: list[SaveObject] = field(default_factory=list)
    keys: list[tuple[SealedUnit, Once]] = field(default_factory=list)
    calls: list[tuple[SealedUnit, Call]] = field(default_factory=list)
    sends: list[NewMessage] = field(default_factory=list)
    runs: list[RunChange] = field(default_factory=list)
    timers: list[tuple[str, TimerChange]] = field(default_factory=list)  # with the task of the unit
    items: list[ItemChange] = field(default_factory=list)
    letters: list[tuple[SealedUnit, LetterAction]] = field(default_factory=list)
    audits: list[tuple[SealedUnit, Audit]] = field(default_factory=list)


def sort(units: Units) -> GroupEffects:
    group = GroupEffects()
    sends, done, kept = group.sends, group.done, group.kept
    for unit in units:
        for fence in unit.fences:
            match fence:
                case Settle():
                    delivery, settlement, _ = fence
                    if settlement is DONE:
                        if (token := delivery.token) in done:
                            done[token].append(delivery)
                        else:
                            done[token] = [delivery]
                    elif settlement is None:
                        kept.setdefault(delivery.token, []).append(delivery.seq)
                    else:
                        group.settled.append(fence)
                case SaveObject():
                    group.saves.append(fence)
                case Once():
                    group.keys.append((unit, fence))
        for effect in unit.effects:
            match effect:
                case NewMessage():
                    sends.append(effect)
                case Write() | WriteMany() | Atomic():
                    group.calls.append((unit, effect))
                case SetTimer() | ClearTimer() | TickNote():
                    group.timers.append((unit.task, effect))
                case NoteItem() | DropItems():
                    group.items.append(effect)
                case Replay() | Resolve() | Edit():
                    group.letters.append((unit, effect))
                case Audit():
                    group.audits.append((unit, effect))
                case _:
                    group.runs.append(effect)
    return group
