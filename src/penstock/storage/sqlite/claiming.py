"""Claims inside a commit: what is due, as far as there is room, rate and a whole batch; and leases that have lapsed."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import apsw
import msgspec

from penstock.contracts.ledger import Committed, Want
from penstock.model.message import PRIORITIES, Delivery
from penstock.model.pacing import allowed, moved
from penstock.model.prices import OPERATION_BYTES
from penstock.storage.sqlite.connection import damaged
from penstock.storage.sqlite.returning import return_rows
from penstock.storage.sqlite.session import PULLED, Session
from penstock.storage.sqlite.tally import EXPIRED, OPERATIONS, Tally
from penstock.storage.statements import load

SQL = load("penstock.storage.sqlite", "claiming.sql")
EXPIRING = load("penstock.storage.sqlite", "operations.sql")
EXPIRED_AT_ONCE = 1_000  # rows that a claim removes before it takes any; usually they are gone by then
ALONE_AGAIN_MICROS = 1_000_000  # when to look again for the turn of a queue that runs one at a time in all workers
LOWEST_FIRST_EVERY = 10  # of a queue's claims one in ten starts at the lowest priority, so that it cannot starve


class Rule(NamedTuple):
    """What an operator or the app has said about a queue that a claim must heed."""

    paused: bool = False
    rate: float | None = None
    next_start: int = 0
    parallel: int | None = None


FREE = Rule()


class Claimer:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._claims: dict[str, int] = {}  # by queue, those that took something: looks in between must not be counted

    def claim(self, wants: Sequence[Want], committed: Committed, tally: Tally, now: int) -> None:
        if any(want.lapsing for want in wants):
            # First: what comes back here may have expired meanwhile.
            committed.swept += self._take_back(PULLED, committed.number, now, tally)
        if self._expire(tally, now):
            committed.next_due |= {want.queue: now for want in wants}
            return
        rules = {name: Rule(*rest) for name, *rest in self._session.connection.execute(SQL["rules"])}
        for want in wants:
            rule = rules.get(want.queue, FREE)
            if rule.parallel is not None:
                committed.parallel[want.queue] = rule.parallel
            if want.request is not None and self._claimed_before(want, committed):
                continue  # also while its queue is paused: what is leased stays so
            if rule.paused:
                committed.next_due[want.queue] = None
            else:
                self._claim_for(want, rule, committed, tally, now)

    def _expire(self, tally: Tally, now: int) -> bool:
        """Nothing is delivered after its end, even if nobody looked when that was. Tells whether more is to be removed."""
        if not self._has_expired(now):
            return False
        probe = {"now": now, "limit": EXPIRED_AT_ONCE}
        rows: list[Any] = self._session.connection.execute(EXPIRING["expire"], probe).fetchall()
        for queue, body_bytes in rows:
            tally.left(queue, EXPIRED, body_bytes)
        return self._has_expired(now)

    def _has_expired(self, now: int) -> bool:
        first = self._session.value(EXPIRING["next_expiry"])
        return first is not None and first <= now

    def _claim_for(self, want: Want, rule: Rule, committed: Committed, tally: Tally, now: int) -> None:
        limit = want.limit
        if want.alone and limit:
            if self._session.value(SQL["is_held"], {"queue": want.queue}) is not None:
                committed.next_due[want.queue] = now + ALONE_AGAIN_MICROS
                return
            limit = 1
        if rule.rate:
            limit = min(limit, allowed(rule.rate, rule.next_start, now))
            if limit == 0:
                committed.next_due[want.queue] = rule.next_start
                return
        if want.wait_micros:
            limit = self._whole_batches(want, limit, now)
        taken = self._take(want, limit, committed, now) if limit else 0
        if taken:
            extra = sum(max(len(each.body) - 1, 0) // OPERATION_BYTES for each in committed.claimed[-taken:])
            tally.of(want.queue)[OPERATIONS] += taken + extra
        if rule.rate and taken:
            start = moved(rule.rate, rule.next_start, now, taken)
            self._session.connection.execute(SQL["note_start"], {"queue": want.queue, "start": start})
            if taken < want.limit:
                first = self._next_due(want.queue)
                committed.next_due[want.queue] = None if first is None else max(first, start)
        elif taken < want.limit:
            first = self._next_due(want.queue)
            if want.wait_micros and first is not None and first <= now:
                first = self._next_batch(want)
            committed.next_due[want.queue] = first
        if want.request is not None and taken:
            self._note_request(want, committed.number, now)

    def _take(self, want: Want, limit: int, committed: Committed, now: int) -> int:
        left = limit
        claims = self._claims.get(want.queue, 0) + 1
        priorities = PRIORITIES if claims % LOWEST_FIRST_EVERY else PRIORITIES[::-1]
        holder = PULLED if want.pull else self._session.worker
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
                lease = {"worker": holder, "number": committed.number, "seqs": seqs([row[0] for row in rows])}
                self._session.connection.execute(SQL["take"], lease | {"lease_end": now + want.lease_micros})
                committed.claimed += map(_delivery, rows)
                left -= len(rows)
                if left <= 0:
                    break
        if left < limit:
            self._claims[want.queue] = claims
        return limit - left

    def _whole_batches(self, want: Want, limit: int, now: int) -> int:
        """How many rows may be taken now: whole batches, and the rest once its oldest has waited long enough."""
        ready = 0
        oldest = now
        for priority in PRIORITIES:
            probe = {"queue": want.queue, "priority": priority, "now": now, "limit": max(limit, want.batch)}
            found: list[Any] = self._session.connection.execute(SQL["ready"], probe).fetchall()
            ((count, first),) = found
            ready += count
            oldest = oldest if first is None else min(oldest, first)
        if oldest + want.wait_micros <= now:
            return limit
        most = limit - limit % want.batch or limit
        return min(most, ready // want.batch * want.batch)

    def _next_batch(self, want: Want) -> int:
        """When the rows that wait are a batch: with the one that makes it full, or when the first has waited long enough."""
        dues: list[int] = []
        for priority in PRIORITIES:
            probe = {"queue": want.queue, "priority": priority, "limit": want.batch}
            dues += [due for (due,) in self._session.connection.execute(SQL["next_dues"], probe)]
        dues.sort()
        waited = dues[0] + want.wait_micros
        return waited if len(dues) < want.batch else min(waited, dues[want.batch - 1])

    def _due(self, probe: dict[str, Any]) -> list[Any]:
        try:
            return self._session.connection.execute(SQL["due"], probe).fetchall()
        except UnicodeDecodeError as error:
            raise damaged(self._session.settings.path, error) from error

    def _next_due(self, queue: str) -> int | None:
        dues = (self._session.value(SQL["next_due"], {"queue": queue, "priority": each}) for each in PRIORITIES)
        return min((due for due in dues if due is not None), default=None)

    # -- pulls that are asked for again ------------------------------------------------------------------

    def _claimed_before(self, want: Want, committed: Committed) -> bool:
        """An answer that never arrived is given again: the same rows under the same leases, as far as they are held."""
        saved = self._session.value(SQL["find_request"], {"scope": _scope(want), "key": want.request})
        if saved is None:
            return False
        held = {"token": msgspec.json.decode(bytes(saved)), "worker": PULLED}
        committed.claimed += map(_delivery, self._session.connection.execute(SQL["pulled"], held).fetchall())
        return True

    def _note_request(self, want: Want, number: int, now: int) -> None:
        noted = {"scope": _scope(want), "key": want.request, "result": msgspec.json.encode(number), "now": now}
        self._session.connection.execute(SQL["note_request"], noted)

    # -- leases that have lapsed -------------------------------------------------------------------------

    def sweep(self, number: int, now: int, tally: Tally) -> int:
        """Returns rows whose lease has lapsed: their worker is stopped, cut off, or on another host and dead."""
        lapsed: list[Any] = self._session.connection.execute(SQL["lapsed"], {"now": now}).fetchall()
        return sum(self._take_back(worker, number, now, tally) for (worker,) in lapsed)

    def _take_back(self, worker: int, number: int, now: int, tally: Tally) -> int:
        started = None if worker == PULLED else self._session.started_in(worker)
        returned = return_rows(self._session, worker, tally, started=started, lapsed_by=now, now=now, number=number)
        return returned.released + returned.suspected + returned.charged + returned.dead

    def next_lapse(self) -> int | None:
        lapse: int | None = self._session.value(SQL["next_lapse"])
        return lapse


_delivery = partial(tuple.__new__, Delivery)  # what `Delivery._make` does, without its checks


def seqs(numbers: list[int]) -> Any:
    return apsw.carray(array("q", numbers))


def _scope(want: Want) -> bytes:
    return f"pull:{want.queue}".encode()
