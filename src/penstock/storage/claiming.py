"""Claims inside a commit: what is due, as far as there is room, rate and a whole batch; and leases that have lapsed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from penstock.contracts.ledger import Committed, Want
from penstock.model.message import PRIORITIES, Delivery
from penstock.model.pacing import allowed, moved
from penstock.model.prices import OPERATION_BYTES
from penstock.storage.returning import return_rows
from penstock.storage.session import PULLED, Session
from penstock.storage.tally import EXPIRED, OPERATIONS, Tally

EXPIRED_AT_ONCE = 1_000  # rows that a claim removes before it takes any; usually they are gone by then
LOCKED_AGAIN_MICROS = (
    1_000_000  # when to look again for a row whose lease has lapsed, and that somebody is just changing
)
TURN_AGAIN_MICROS = 20_000  # when to look again at a queue that somebody else is just counting
ALONE_AGAIN_MICROS = 1_000_000  # when to look again for the turn of a queue that runs one at a time in all workers
LOWEST_FIRST_EVERY = 10  # of a queue's claims one in ten starts at the lowest priority, so that it cannot starve


class Rule(NamedTuple):
    """What an operator or the app has said about a queue that a claim must heed."""

    paused: bool = False
    rate: float | None = None
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
        said: list[Any] = self._session.rows("claiming.rules")
        rules = {name: Rule(*rest) for name, *rest in said}
        expiry = next((first for name, first, *_ in said if name is None), None)
        if expiry is not None and expiry <= now and self._expire(tally, now):
            committed.next_due |= {want.queue: now for want in wants}
            return
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
        probe = {"now": now, "limit": EXPIRED_AT_ONCE}
        rows: list[Any] = self._session.rows("operations.expire", probe)
        for queue, body_bytes in rows:
            tally.left(queue, EXPIRED, body_bytes)
        first = self._session.value("operations.next_expiry")
        return first is not None and first <= now

    def _claim_for(self, want: Want, rule: Rule, committed: Committed, tally: Tally, now: int) -> None:
        limit = want.limit
        counted = (want.alone and limit > 0) or bool(rule.rate)
        if counted and not self._session.try_lock_queue(want.queue):
            committed.next_due[want.queue] = now + TURN_AGAIN_MICROS
            return
        if want.alone and limit:
            if self._session.value("claiming.is_held", {"queue": want.queue}) is not None:
                committed.next_due[want.queue] = now + ALONE_AGAIN_MICROS
                return
            limit = 1
        if rule.rate:
            next_start: int = self._session.value("claiming.next_start", {"queue": want.queue})
            limit = min(limit, allowed(rule.rate, next_start, now))
            if limit == 0:
                committed.next_due[want.queue] = next_start
                return
        if want.wait_micros:
            limit = self._whole_batches(want, limit, now)
        taken = self._take(want, limit, committed, now) if limit else 0
        if taken:
            extra = sum(max(len(each.body) - 1, 0) // OPERATION_BYTES for each in committed.claimed[-taken:])
            tally.of(want.queue)[OPERATIONS] += taken + extra
        if rule.rate and taken:
            start = moved(rule.rate, next_start, now, taken)
            self._session.change("claiming.note_start", {"queue": want.queue, "start": start})
            if taken < want.limit:
                first = self._session.next_due(want.queue, now)
                committed.next_due[want.queue] = None if first is None else max(first, start)
        elif taken < want.limit:
            first = self._session.next_due(want.queue, now)
            if want.wait_micros and first is not None and first <= now:
                first = self._next_batch(want)
            committed.next_due[want.queue] = first
        if want.request is not None and taken:
            self._note_request(want, committed.number, now)

    def _take(self, want: Want, limit: int, committed: Committed, now: int) -> int:
        claims = self._claims.get(want.queue, 0) + 1
        priorities = PRIORITIES if claims % LOWEST_FIRST_EVERY else PRIORITIES[::-1]
        holder = PULLED if want.pull else self._session.worker
        rows = self._session.take(want, limit, priorities, holder=holder, number=committed.number, now=now)
        if rows:
            self._claims[want.queue] = claims
            taken = [*map(_delivery, rows)]
            committed.number = committed.number or taken[0].token
            committed.claimed += taken
        return len(rows)

    def _whole_batches(self, want: Want, limit: int, now: int) -> int:
        """How many rows may be taken now: whole batches, and the rest once its oldest has waited long enough."""
        ready = 0
        oldest = now
        for priority in PRIORITIES:
            probe = {"queue": want.queue, "priority": priority, "now": now, "limit": max(limit, want.batch)}
            found: list[Any] = self._session.rows("claiming.ready", probe)
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
            dues += [due for (due,) in self._session.rows("claiming.next_dues", probe)]
        dues.sort()
        waited = dues[0] + want.wait_micros
        return waited if len(dues) < want.batch else min(waited, dues[want.batch - 1])

    # -- pulls that are asked for again ------------------------------------------------------------------

    def _claimed_before(self, want: Want, committed: Committed) -> bool:
        """An answer that never arrived is given again: the same rows under the same leases, as far as they are held."""
        saved = self._session.value("claiming.find_request", {"scope": _scope(want), "key": want.request})
        if saved is None:
            return False
        held = {"token": msgspec.json.decode(bytes(saved)), "worker": PULLED}
        committed.claimed += map(_delivery, self._session.rows("claiming.pulled", held))
        return True

    def _note_request(self, want: Want, number: int, now: int) -> None:
        noted = {"scope": _scope(want), "key": want.request, "result": msgspec.json.encode(number), "now": now}
        self._session.change("claiming.note_request", noted)

    # -- leases that have lapsed -------------------------------------------------------------------------

    def sweep(self, number: int, now: int, tally: Tally) -> int:
        """Returns rows whose lease has lapsed: their worker is stopped, cut off, or on another host and dead."""
        lapsed: list[Any] = self._session.rows("claiming.lapsed", {"now": now})
        return sum(self._take_back(worker, number, now, tally) for (worker,) in lapsed)

    def _take_back(self, worker: int, number: int, now: int, tally: Tally) -> int:
        started = None if worker == PULLED else self._session.started_in(worker)
        returned = return_rows(self._session, worker, tally, started=started, lapsed_by=now, now=now, number=number)
        return returned.released + returned.suspected + returned.charged + returned.dead

    def next_lapse(self, *, swept: bool = False, in_vain: int | None = None) -> int | None:
        """`in_vain` is when a sweep found nothing: what has lapsed all the same is locked, and not looked for at once."""
        lapse = self._session.next_lapse(surely=swept)
        if lapse is not None and in_vain is not None and lapse <= in_vain:
            return in_vain + LOCKED_AGAIN_MICROS
        return lapse


_delivery = partial(tuple.__new__, Delivery)  # what `Delivery._make` does, without its checks


def _scope(want: Want) -> bytes:
    return f"pull:{want.queue}".encode()
