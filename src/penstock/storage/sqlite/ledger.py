"""Group commits: many units of work, one transaction, and the claims that ride along."""

from __future__ import annotations

import apsw

from penstock.contracts.effects import OnceKey
from penstock.contracts.faults import Faults
from penstock.contracts.ledger import Chores, Committed, NotCommitted, Requests, Units
from penstock.model.errors import StatementFailed, StorageFull, StoreError, StoreReplaced
from penstock.storage.group_commit import GroupCommit
from penstock.storage.sends import Conflicts
from penstock.storage.sqlite.connection import damaged
from penstock.storage.sqlite.session import SqliteSession

FULL_WAIT_MICROS = 1_000_000  # nothing is claimed while the disk is full; looked at again after so long


class SqliteLedger:
    def __init__(self, session: SqliteSession, faults: Faults) -> None:
        self._session = session
        self._at = faults.at
        self._group_commit = GroupCommit(session, faults)

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._group_commit.find_once(once)

    def commit(self, units: Units, requests: Requests, *, now: int, sweep: bool, fire: bool = False) -> Committed:
        with self._session.turn:
            postponed: dict[str, int | None] = {}
            if self._session.reserve.released and not self._session.reserve.refill():
                if any(unit.grows for unit in units):
                    raise StorageFull(f"The disk that holds {self._session.settings.path} is full; nothing was saved.")
                postponed = {request.queue: now + FULL_WAIT_MICROS for request in requests}
                requests = ()
            chores = Chores(sweep, fire)
            try:
                committed = self._try(units, requests, chores, now, careful=False)
            except Conflicts:
                committed = self._try(units, requests, chores, now, careful=True)
        committed.next_due |= postponed
        return committed

    def _try(self, units: Units, requests: Requests, chores: Chores, now: int, *, careful: bool) -> Committed:
        session = self._session
        number = 0
        try:
            with session.errors():
                session.begin()
                committed = self._group_commit.apply(units, requests, chores, now=now, careful=careful)
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
            elif isinstance(error, StoreError) and not isinstance(error, StoreReplaced):
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
            saved = session.value("ledger.read_number", {"worker": session.worker})
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
                f"The disk failed under {path} ({error}). The last commit can be read, but it may not "
                "survive a power failure. Check the disk, and start again.",
                path=str(path),
            ) from error
