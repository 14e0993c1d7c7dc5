"""Group commits: many units of work, one transaction, and the claims that ride along."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw

from penstock.contracts.faults import Faults
from penstock.contracts.ledger import (
    Committed,
    NotCommitted,
    OnceKey,
    RepeatedUnits,
    SealedUnit,
    StaleUnits,
    Want,
)
from penstock.model.errors import StatementFailed, StorageFull, StoreError
from penstock.model.message import KEYED, Delivery
from penstock.model.outcome import DONE, Again, Dead, Settlement, Split
from penstock.storage.sqlite.burial import bury, exhume, split
from penstock.storage.sqlite.claiming import Claimer, seqs
from penstock.storage.sqlite.connection import damaged
from penstock.storage.sqlite.items import change_items
from penstock.storage.sqlite.owning import is_owned, save
from penstock.storage.sqlite.sending import Conflicts, send
from penstock.storage.sqlite.session import Session
from penstock.storage.sqlite.tally import ACKED, Tally
from penstock.storage.sqlite.timing import change, fire_due, next_timer
from penstock.storage.sqlite.users import run_calls
from penstock.storage.statements import load

SQL = load("penstock.storage.sqlite", "ledger.sql")

FULL_WAIT_MICROS = 1_000_000  # nothing is claimed while the disk is full; looked at again after so long


class _Chores(NamedTuple):
    """What a commit does besides its units and claims."""

    now: int
    sweep: bool
    fire: bool


class SqliteLedger:
    def __init__(self, session: Session, faults: Faults) -> None:
        self._session = session
        self._at = faults.at
        self._claimer = Claimer(session)

    def find_once(self, once: OnceKey) -> bytes | None:
        saved = self._session.value(SQL["find_once"], once._asdict())
        return None if saved is None else bytes(saved)

    def commit(
        self, units: Sequence[SealedUnit], wants: Sequence[Want], *, now: int, sweep: bool, fire: bool = False
    ) -> Committed:
        with self._session.turn:
            postponed: dict[str, int | None] = {}
            if self._session.reserve.released and not self._session.reserve.refill():
                if any(unit.grows for unit in units):
                    raise StorageFull(f"The disk that holds {self._session.settings.path} is full; nothing was saved.")
                postponed = {want.queue: now + FULL_WAIT_MICROS for want in wants}
                wants = ()
            try:
                committed = self._try(units, wants, _Chores(now, sweep, fire), careful=False)
            except Conflicts:
                committed = self._try(units, wants, _Chores(now, sweep, fire), careful=True)
        committed.next_due |= postponed
        return committed

    def _try(self, units: Sequence[SealedUnit], wants: Sequence[Want], chores: _Chores, *, careful: bool) -> Committed:
        session = self._session
        number = 0
        try:
            with session.errors():
                session.begin()
                committed = self._fill(units, wants, chores, careful)
                number = committed.number
                if committed.is_empty and not units:
                    # A look that found nothing leaves no trace, or every look would make the neighbours look too.
                    session.rollback()
                    return committed
                self._at("commit.before")
        except BaseException as error:
            session.rollback()
            if isinstance(error, StorageFull):
                session.make_room()
            elif isinstance(error, StoreError):
                session.reopen()
                raise NotCommitted(str(error)) from error
            elif isinstance(error, apsw.SQLError):
                # Users' statements are named by now. This is one of the engine's own, and the file is not as it was made.
                raise damaged(session.settings.path, error) from error
            raise
        try:
            session.commit()
        except apsw.ConstraintError as error:
            session.rollback()
            raise StatementFailed(
                f"The database refused the commit: {error}. A constraint that is checked last (`deferrable`) does not hold.",
                cause=str(error),
            ) from error
        except apsw.Error as error:
            self._learn_the_truth(number, error)
        self._at("commit.after")
        session.checkpointer.after_commit()
        return committed

    def _learn_the_truth(self, number: int, error: apsw.Error) -> None:
        """An error at commit may still be a commit: the number in our own row tells whether the group happened."""
        session = self._session
        session.rollback()
        session.reopen()
        with session.errors():
            saved = session.value(SQL["read_number"], {"worker": session.worker})
        if saved == number:
            self._make_durable(error)
            return
        if isinstance(error, apsw.FullError):
            session.make_room()
            raise StorageFull from error
        raise NotCommitted(f"The commit failed ({error}) and was read back: nothing of it was saved.") from error

    def _make_durable(self, error: apsw.Error) -> None:
        """The group happened, but what failed may have been its sync, and a system forgets what it could not write. Copied
        back from the log and synced, it is as safe as any other."""
        session = self._session
        if not session.checkpointer.run():
            path = session.settings.path
            raise StoreError(
                f"The disk failed under {path} ({error}). The last commit can be read, but nobody can tell whether it would "
                "survive a power loss. Check the disk, and start again.",
                path=str(path),
            ) from error

    def _fill(self, units: Sequence[SealedUnit], wants: Sequence[Want], chores: _Chores, careful: bool) -> Committed:
        session, now = self._session, chores.now
        number = session.value(SQL["next_number"])
        committed = Committed(number)
        self._at("commit.begun")
        tally = Tally()
        self._settle(units, tally, number, now)
        self._at("commit.settled")
        run_calls(session, units, committed.measures)
        self._at("commit.written")
        send(session, units, tally, careful=careful, now=now)
        self._change_timers(units, committed)
        self._at("commit.sent")
        if chores.sweep:
            committed.swept = self._claimer.sweep(number, now, tally)
        if chores.fire:
            fire_due(session, tally, number=number, now=now)
            committed.next_timer = next_timer(session)
            self._at("commit.fired")
        if wants:
            self._claimer.claim(wants, committed, tally, now)
            self._at("commit.claimed")
        if wants or chores.sweep:
            committed.next_lapse = self._claimer.next_lapse()
        committed.is_empty = not (committed.claimed or committed.swept or tally.by_queue)
        tally.save(session)
        tally.tell(committed)
        session.connection.execute(SQL["note_number"], {"number": number, "worker": session.worker})
        if session.connection.changes() != 1:
            raise StoreError("This process's own row is gone: somebody took it for dead. Start it again.")
        return committed

    def _change_timers(self, units: Sequence[SealedUnit], committed: Committed) -> None:
        for unit in units:
            if unit.also is not None and unit.also.items:
                change_items(self._session, unit.also.items)
            if unit.also is not None and unit.also.timers:
                written = sum(measure.rows_written for task, measure in committed.measures if task == unit.task)
                change(self._session, unit.also.timers, rows_written=written)

    # -- the fence and the settlements ------------------------------------------------------------

    def _settle(self, units: Sequence[SealedUnit], tally: Tally, number: int, now: int) -> None:
        done: dict[int, list[Delivery]] = {}
        kept: dict[int, list[int]] = {}
        others: list[tuple[Delivery, Settlement, int]] = []
        keyed: list[SealedUnit] = []
        for unit in units:
            if unit.once is not None:
                keyed.append(unit)
            if unit.delivery is not None and unit.settlement is DONE and unit.also is None:
                done.setdefault(unit.delivery.token, []).append(unit.delivery)
            elif unit.delivery is not None or unit.also is not None:
                for delivery, settlement in unit.fence():
                    if settlement is DONE:
                        done.setdefault(delivery.token, []).append(delivery)
                    elif settlement is None:
                        kept.setdefault(delivery.token, []).append(delivery.seq)
                    else:
                        # A message that asked for time and kept what it did: what its next round sends is new.
                        rounds = int(unit.grows and delivery is unit.delivery)
                        others.append((delivery, settlement, rounds))
            if unit.also is not None and unit.also.letters:
                exhume(self._session, unit.also, tally, now=now)
        held = all(save(self._session, wanted, now) for unit in units if unit.also for wanted in unit.also.saves)
        if keyed:
            self._save_once(keyed, now)
        connection = self._session.connection
        held = held and all(
            self._session.value(SQL["still_held"], _fence(token, rows)) == len(set(rows))
            for token, rows in kept.items()
        )
        for token, deliveries in done.items():
            rows = [delivery.seq for delivery in deliveries]
            if any(delivery.flags for delivery in deliveries):
                came_back = [delivery.seq for delivery in deliveries if delivery.flags & KEYED]
                if came_back:
                    connection.execute(SQL["note_processed"], {"seqs": seqs(came_back), "now": now})
            connection.execute(SQL["settle_done"], _fence(token, rows))
            held = held and connection.changes() == len(rows)
            tally.bulk(deliveries, ACKED)
        for delivery, settlement, rounds in others:
            held = held and self._settle_one(delivery, settlement, rounds, tally, number, now)
        if not held:
            self._name_the_stale(units)

    def _settle_one(
        self, delivery: Delivery, settlement: Settlement, rounds: int, tally: Tally, number: int, now: int
    ) -> bool:
        session = self._session
        if isinstance(settlement, Split):
            return split(session, delivery.seq, delivery.token, settlement.handlers, tally, now=now)
        assert isinstance(settlement, Again | Dead)
        failure = settlement.failure
        facts: dict[str, Any] = {
            "seq": delivery.seq,
            "token": delivery.token,
            "now": now,
            "charged": int(settlement.charged),
            "error_class": failure.error_class if failure else None,
            "error_message": failure.message if failure else None,
        }
        if isinstance(settlement, Again):
            due = now + int(settlement.seconds * 1_000_000)
            again = {"number": number, "due": due, "failed": int(settlement.charged), "rounds": rounds}
            session.connection.execute(SQL["settle_again"], facts | again)
            return session.connection.changes() == 1
        return bury(session, facts | {"reason": settlement.reason, "crashed": 0}, tally, now=now)

    def _name_the_stale(self, units: Sequence[SealedUnit]) -> None:
        """Rolls back first: what the group deleted must be there again to be told from what others took."""
        self._session.rollback()
        stale = [
            unit
            for unit in units
            if not all(self._is_held(delivery) for delivery, _ in unit.fence())
            or not all(is_owned(self._session, wanted) for wanted in (unit.also.saves if unit.also else ()))
        ]
        assert stale, "a fence failed although every row is still held: one delivery was settled twice"
        raise StaleUnits(stale=stale)

    def _is_held(self, delivery: Delivery) -> bool:
        return self._session.value(SQL["held_one"], {"seq": delivery.seq, "token": delivery.token}) is not None

    def _save_once(self, keyed: Sequence[SealedUnit], now: int) -> None:
        repeated = [unit for unit in keyed if unit.once is not None and self.find_once(unit.once) is not None]
        if repeated:
            raise RepeatedUnits(repeated=repeated)
        for unit in keyed:
            assert unit.once is not None
            saved = {"scope": unit.once.scope, "key": unit.once.key, "result": unit.once_result, "now": now}
            self._session.connection.execute(SQL["save_once"], saved)


def _fence(token: int, rows: list[int]) -> dict[str, Any]:
    return {"token": token, "seqs": seqs(rows)}
