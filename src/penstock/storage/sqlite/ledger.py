"""Group commits: many units of work, one transaction, and the claims that ride along."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any

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
from penstock.model.message import PRIORITIES, Delivery, NewMessage
from penstock.model.outcome import DONE, Again, Dead
from penstock.storage.sqlite.connection import damaged
from penstock.storage.sqlite.returning import return_rows
from penstock.storage.sqlite.session import Session
from penstock.storage.sqlite.users import run_calls
from penstock.storage.statements import load

SQL = load("penstock.storage.sqlite", "ledger.sql")

ROWS_A_STATEMENT = 50  # one insert of 50 rows costs a tenth less than 50 inserts; more gain nothing
FULL_WAIT_MICROS = 1_000_000  # nothing is claimed while the disk is full; looked at again after so long
LOWEST_FIRST_EVERY = 10  # one claim in ten starts at the lowest priority, so that it cannot starve
COLUMNS_SENT = len(NewMessage._fields)
SEND_ONE = SQL["send"]
_VALUES = "(" + ", ".join("?" * COLUMNS_SENT) + ")"
SEND_MANY = SEND_ONE.replace(_VALUES, ", ".join([_VALUES] * ROWS_A_STATEMENT))


class _Tally:
    """What a group adds to the counters of its queues."""

    def __init__(self) -> None:
        self.by_queue: dict[str, list[int]] = {}

    def of(self, queue: str) -> list[int]:
        counts = self.by_queue.get(queue)
        if counts is None:
            counts = self.by_queue[queue] = [0, 0, 0]
        return counts


class _Conflicts(Exception):
    """Some sends were there already: the group is run again counting each one."""


class SqliteLedger:
    def __init__(self, session: Session, faults: Faults) -> None:
        self._session = session
        self._at = faults.at
        self._claims = 0

    def find_once(self, once: OnceKey) -> bytes | None:
        saved = self._session.value(SQL["find_once"], once._asdict())
        return None if saved is None else bytes(saved)

    def commit(self, units: Sequence[SealedUnit], wants: Sequence[Want], *, now: int, sweep: bool) -> Committed:
        with self._session.turn:
            postponed: dict[str, int | None] = {}
            if self._session.reserve.released and not self._session.reserve.refill():
                if any(unit.grows for unit in units):
                    raise StorageFull(f"The disk that holds {self._session.settings.path} is full; nothing was saved.")
                postponed = {want.queue: now + FULL_WAIT_MICROS for want in wants}
                wants = ()
            try:
                committed = self._try(units, wants, now, sweep, careful=False)
            except _Conflicts:
                committed = self._try(units, wants, now, sweep, careful=True)
        committed.next_due |= postponed
        return committed

    def _try(
        self, units: Sequence[SealedUnit], wants: Sequence[Want], now: int, sweep: bool, careful: bool
    ) -> Committed:
        session = self._session
        number = 0
        try:
            with session.errors():
                session.begin()
                committed = self._fill(units, wants, now, sweep, careful)
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

    def _fill(
        self, units: Sequence[SealedUnit], wants: Sequence[Want], now: int, sweep: bool, careful: bool
    ) -> Committed:
        connection = self._session.connection
        number = self._session.value(SQL["next_number"])
        committed = Committed(number)
        self._at("commit.begun")
        tally = _Tally()
        self._settle(units, tally, number, now)
        self._at("commit.settled")
        run_calls(self._session, units, committed.measures)
        self._at("commit.written")
        self._send(units, tally, careful)
        self._at("commit.sent")
        if sweep:
            committed.swept = self._sweep(number, now, tally)
        if wants:
            self._claim(wants, committed, now)
            self._at("commit.claimed")
        if wants or sweep:
            committed.next_lapse = self._session.value(SQL["next_lapse"])
        committed.is_empty = not (committed.claimed or committed.swept or tally.by_queue)
        worker = self._session.worker
        for queue, (sent, acked, dead) in tally.by_queue.items():
            if sent or acked or dead:  # nothing, if all that was sent was there already
                added = {"queue": queue, "worker": worker, "sent": sent, "acked": acked, "dead": dead}
                connection.execute(SQL["count"], added)
        connection.execute(SQL["note_number"], {"number": number, "worker": worker})
        if connection.changes() != 1:
            raise StoreError("This process's own row is gone: somebody took it for dead. Start it again.")
        return committed

    # -- the fence and the settlements ------------------------------------------------------------

    def _settle(self, units: Sequence[SealedUnit], tally: _Tally, number: int, now: int) -> None:
        done: dict[int, list[int]] = {}
        kept: dict[int, list[int]] = {}
        others: list[SealedUnit] = []
        keyed: list[SealedUnit] = []
        for unit in units:
            if unit.once is not None:
                keyed.append(unit)
            delivery = unit.delivery
            if delivery is None:
                continue
            if unit.settlement is DONE:
                done.setdefault(delivery.token, []).append(delivery.seq)
                tally.of(delivery.queue)[1] += 1
            elif unit.settlement is None:
                kept.setdefault(delivery.token, []).append(delivery.seq)
            else:
                others.append(unit)
        if keyed:
            self._save_once(keyed, now)
        connection = self._session.connection
        held = all(
            self._session.value(SQL["still_held"], _fence(token, seqs)) == len(set(seqs))
            for token, seqs in kept.items()
        )
        for token, seqs in done.items():
            connection.execute(SQL["settle_done"], _fence(token, seqs))
            held = held and connection.changes() == len(seqs)
        for unit in others:
            held = held and self._settle_one(unit, tally, number, now)
        if not held:
            self._name_the_stale(units)

    def _settle_one(self, unit: SealedUnit, tally: _Tally, number: int, now: int) -> bool:
        connection = self._session.connection
        delivery, settlement = unit.delivery, unit.settlement
        assert delivery is not None
        assert isinstance(settlement, Again | Dead)
        failure = settlement.failure
        rounds = int(unit.grows)  # it asked for time and kept what it did: what the next round sends is new
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
            connection.execute(SQL["settle_again"], facts | again)
            return connection.changes() == 1
        connection.execute(SQL["bury"], facts | {"reason": settlement.reason, "crashed": 0})
        connection.execute(SQL["remove"], {"seq": delivery.seq, "token": delivery.token})
        tally.of(delivery.queue)[2] += 1
        return connection.changes() == 1

    def _name_the_stale(self, units: Sequence[SealedUnit]) -> None:
        """Rolls back first: what the group deleted must be there again to be told from what others took."""
        self._session.rollback()
        stale = [
            unit
            for unit in units
            if unit.delivery is not None
            and self._session.value(SQL["held_one"], {"seq": unit.delivery.seq, "token": unit.delivery.token}) is None
        ]
        assert stale, "a fence failed although every row is still held: one delivery was settled twice"
        raise StaleUnits(stale=stale)

    def _save_once(self, keyed: Sequence[SealedUnit], now: int) -> None:
        repeated = [unit for unit in keyed if unit.once is not None and self.find_once(unit.once) is not None]
        if repeated:
            raise RepeatedUnits(repeated=repeated)
        for unit in keyed:
            assert unit.once is not None
            saved = {"scope": unit.once.scope, "key": unit.once.key, "result": unit.once_result, "now": now}
            self._session.connection.execute(SQL["save_once"], saved)

    # -- sends ------------------------------------------------------------------------------------

    def _send(self, units: Sequence[SealedUnit], tally: _Tally, careful: bool) -> None:
        rows: list[NewMessage] = []
        for unit in units:
            if unit.sends:
                rows += unit.sends
        if not rows:
            return
        connection = self._session.connection
        if careful:
            for row in rows:
                connection.execute(SEND_ONE, row)
                tally.of(row.queue)[0] += connection.changes()
            return
        before = connection.total_changes()
        whole = len(rows) - len(rows) % ROWS_A_STATEMENT
        for start in range(0, whole, ROWS_A_STATEMENT):
            connection.execute(SEND_MANY, tuple(chain.from_iterable(rows[start : start + ROWS_A_STATEMENT])))
        if whole < len(rows):
            connection.executemany(SEND_ONE, rows[whole:])
        if connection.total_changes() - before != len(rows):
            self._session.rollback()
            raise _Conflicts
        for queue, count in Counter(map(attrgetter("queue"), rows)).items():
            tally.of(queue)[0] += count

    # -- claims -----------------------------------------------------------------------------------

    def _claim(self, wants: Sequence[Want], committed: Committed, now: int) -> None:
        connection = self._session.connection
        self._claims += 1
        priorities = PRIORITIES if self._claims % LOWEST_FIRST_EVERY else PRIORITIES[::-1]
        paused = {name for (name,) in connection.execute(SQL["paused"])}
        for want in wants:
            if want.queue in paused:
                committed.next_due[want.queue] = None
                continue
            left = want.limit
            for priority in priorities:
                probe = {
                    "number": committed.number,
                    "queue": want.queue,
                    "priority": priority,
                    "now": now,
                    "limit": left,
                }
                rows = self._due(probe)
                if rows:
                    taken = _seqs([row[0] for row in rows])
                    lease = {"worker": self._session.worker, "number": committed.number, "seqs": taken}
                    connection.execute(SQL["take"], lease | {"lease_end": now + want.lease_micros})
                    committed.claimed += map(_delivery, rows)
                    left -= len(rows)
                    if left <= 0:
                        break
            else:
                committed.next_due[want.queue] = self._next_due(want.queue)

    def _due(self, probe: dict[str, Any]) -> list[Any]:
        try:
            return self._session.connection.execute(SQL["due"], probe).fetchall()
        except UnicodeDecodeError as error:
            raise damaged(self._session.settings.path, error) from error

    def _next_due(self, queue: str) -> int | None:
        dues = (self._session.value(SQL["next_due"], {"queue": queue, "priority": each}) for each in PRIORITIES)
        return min((due for due in dues if due is not None), default=None)

    def _sweep(self, number: int, now: int, tally: _Tally) -> int:
        """Returns rows whose lease has lapsed: their worker is stopped, cut off, or on another host and dead."""
        lapsed: list[Any] = self._session.connection.execute(SQL["lapsed"], {"now": now}).fetchall()
        swept = 0
        for (worker,) in lapsed:
            started = self._session.started_in(worker)
            returned = return_rows(self._session, worker, started=started, lapsed_by=now, now=now, number=number)
            swept += returned.released + returned.suspected + returned.charged
            for queue, count in returned.dead_by_queue.items():
                tally.of(queue)[2] += count
        return swept


_delivery = partial(tuple.__new__, Delivery)  # what `Delivery._make` does, without its checks


def _seqs(seqs: list[int]) -> Any:
    return apsw.carray(array("q", seqs))


def _fence(token: int, seqs: list[int]) -> dict[str, Any]:
    return {"token": token, "seqs": _seqs(seqs)}
