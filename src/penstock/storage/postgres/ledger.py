"""Group commits: many units of work, one transaction, and the claims that ride along."""

from __future__ import annotations

import time

import psycopg

from penstock.contracts.effects import Atomic, OnceKey
from penstock.contracts.faults import Faults
from penstock.contracts.ledger import Chores, Committed, NotCommitted, Requests, Units
from penstock.model.errors import StatementFailed, StorageFull, StoreError
from penstock.model.message import KEYED, NewMessage
from penstock.storage.group_commit import GroupCommit
from penstock.storage.postgres.connection import CONFLICTS, failed, first_line, is_lost, translated
from penstock.storage.postgres.session import TRIES, Conflict, PostgresSession
from penstock.storage.sends import Conflicts
from penstock.storage.tally import SENT, Tally


class PostgresLedger:
    def __init__(self, session: PostgresSession, faults: Faults) -> None:
        self._session = session
        self._at = faults.at
        self._group_commit = GroupCommit(session, faults)

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._group_commit.find_once(once)

    def commit(self, units: Units, requests: Requests, *, now: int, sweep: bool, fire: bool = False) -> Committed:
        chores = Chores(sweep, fire)
        row = None if requests or any(chores) else self._lone(units)
        if row is not None and (sent := self._send_alone(row, now)) is not None:
            return sent
        if not any(type(effect) is Atomic for unit in units for effect in unit.effects):
            return self._commit(units, requests, chores, now, serializable=False)
        # Functions that read and then write are serializable among themselves. Claims would only get in their way.
        committed = self._commit(units, (), Chores(), now, serializable=True)
        if requests or any(chores):
            self._claim_after(committed, requests, chores, now)
        return committed

    def _lone(self, units: Units) -> NewMessage | None:
        """The message of a group that does nothing but send it."""
        if len(units) != 1 or units[0].fences or len(units[0].effects) != 1:
            return None
        (effect,) = units[0].effects
        plain = (
            isinstance(effect, NewMessage) and not effect.flags & KEYED and effect.queue not in self._session.guarded
        )
        return effect if plain and isinstance(effect, NewMessage) else None

    def _send_alone(self, row: NewMessage, now: int) -> Committed | None:
        """None where the usual way is to find out what is wrong: nothing was done."""
        try:
            self._session.ensure()
            for point in ("commit.begun", "commit.settled", "commit.written", "commit.sent", "commit.before"):
                self._at(point)
            number = self._session.send_alone(row, now)
        except psycopg.Error:
            return None
        except BaseException as error:
            self._explain(error)
            raise
        if number is None:
            return None
        self._at("commit.after")
        tally, committed = Tally(), Committed(number)
        tally.bulk([row], SENT)
        tally.tell(committed)
        return committed

    def _claim_after(self, committed: Committed, requests: Requests, chores: Chores, now: int) -> None:
        """The units are saved, whatever becomes of the claims."""
        try:
            claims = self._commit((), requests, chores, now, serializable=False)
        except (StoreError, NotCommitted):
            committed.next_due |= {request.queue: now for request in requests}
            return
        committed.claimed, committed.next_due, committed.swept = claims.claimed, claims.next_due, claims.swept
        committed.next_lapse, committed.next_timer = claims.next_lapse, claims.next_timer
        committed.parallel = claims.parallel
        committed.measures += claims.measures
        committed.deaths += claims.deaths
        for queue, due in claims.waiting.items():
            committed.waiting[queue] = min(due, committed.waiting.get(queue, due))

    def _commit(self, units: Units, requests: Requests, chores: Chores, now: int, *, serializable: bool) -> Committed:
        careful = False
        for tried in range(TRIES):
            try:
                return self._try(units, requests, chores, now, careful=careful, serializable=serializable)
            except Conflicts:
                careful = True
            except Conflict:
                time.sleep(0.001 * tried)
        raise NotCommitted(f"A commit conflicted with other transactions {TRIES} times; nothing of it was saved.")

    def _try(
        self, units: Units, requests: Requests, chores: Chores, now: int, *, careful: bool, serializable: bool
    ) -> Committed:
        session = self._session
        try:
            session.ensure()
            session.begin(serializable=serializable, with_first=True)
            committed = self._group_commit.apply(units, requests, chores, now=now, careful=careful)
            if committed.is_empty and not units:
                session.rollback()
                return committed
            self._at("commit.before")
        except BaseException as error:
            session.rollback()
            self._explain(error)
            raise
        try:
            session.commit()
        except CONFLICTS as error:
            session.rollback()
            raise Conflict from error
        except psycopg.IntegrityError as error:
            session.rollback()
            raise StatementFailed(
                f"The database refused the commit: {first_line(error)}. A constraint that is checked last (`deferrable`) "
                "does not hold.",
                cause=first_line(error),
            ) from error
        except psycopg.Error as error:
            self._learn_the_truth(committed.number, error)
        self._at("commit.after")
        return committed

    def _explain(self, error: BaseException) -> None:
        """Says what an error before the commit means. Users' statements are named by now."""
        session = self._session
        if isinstance(error, CONFLICTS):
            raise Conflict from error
        if isinstance(error, psycopg.Error):
            if is_lost(session.connection, error):
                session.reopen()
                raise NotCommitted(f"The connection was lost ({first_line(error)}); nothing was saved.") from error
            with translated(session.settings):
                raise error
            raise failed(session.settings, error) from error
        if isinstance(error, StoreError) and not isinstance(error, StorageFull):
            raise NotCommitted(str(error)) from error

    def _learn_the_truth(self, number: int, error: psycopg.Error) -> None:
        """An error at commit may still be a commit: the number that the group wrote tells whether it happened."""
        session = self._session
        session.rollback()
        if session.reopen() != number:
            raise NotCommitted(
                f"The commit failed ({first_line(error)}) and was read back: nothing was saved."
            ) from error
