"""Claims inside a commit: what is due, as far as there is room, rate and a whole batch; and leases that have lapsed."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import msgspec

from penstock.contracts.ledger import ClaimRequest, Committed, Requests
from penstock.model.message import PRIORITIES, Delivery
from penstock.model.pacing import allowed, moved
from penstock.model.prices import OPERATION_BYTES
from penstock.storage.dead_workers import return_rows
from penstock.storage.session import PULLED, Session
from penstock.storage.tally import EXPIRED, OPERATIONS, Tally

EXPIRED_AT_ONCE = 1_000  # rows that a claim removes before it takes any; usually they are gone by then
LOCKED_AGAIN_MICROS = 1_000_000  # when to look again for a lapsed row that another transaction is changing
TURN_AGAIN_MICROS = 20_000  # when to look again at a queue that another transaction is counting
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

    def claim(self, requests: Requests, committed: Committed, tally: Tally, now: int) -> None:
        if any(request.lapsing for request in requests):
            # First: what comes back here may have expired meanwhile.
            committed.swept += self._take_back(PULLED, committed.number, now, tally)
        said: list[Any] = self._session.rows("claims.rules")
        rules = {name: Rule(*rest) for name, *rest in said}
        expiry = next((first for name, first, *_ in said if name is None), None)
        if expiry is not None and expiry <= now and self._expire(tally, now):
            committed.next_due |= {request.queue: now for request in requests}
            return
        for request in requests:
            rule = rules.get(request.queue, FREE)
            if rule.parallel is not None:
                committed.parallel[request.queue] = rule.parallel
            if request.request is not None and self._claimed_before(request, committed):
                continue  # also while its queue is paused: what is leased stays so
            if rule.paused:
                committed.next_due[request.queue] = None
            else:
                self._claim_for(request, rule, committed, tally, now)

    def _expire(self, tally: Tally, now: int) -> bool:
        """Remove what has expired, so that it is never delivered. Return whether there is more to remove."""
        probe = {"now": now, "limit": EXPIRED_AT_ONCE}
        rows: list[Any] = self._session.rows("operations.expire", probe)
        for queue, body_bytes in rows:
            tally.left(queue, EXPIRED, body_bytes)
        first = self._session.value("operations.next_expiry")
        return first is not None and first <= now

    def _claim_for(self, request: ClaimRequest, rule: Rule, committed: Committed, tally: Tally, now: int) -> None:
        limit = request.limit
        counted = (request.alone and limit > 0) or bool(rule.rate)
        if counted and not self._session.try_lock_queue(request.queue):
            committed.next_due[request.queue] = now + TURN_AGAIN_MICROS
            return
        if request.alone and limit:
            if self._session.value("claims.is_held", {"queue": request.queue}) is not None:
                committed.next_due[request.queue] = now + ALONE_AGAIN_MICROS
                return
            limit = 1
        if rule.rate:
            next_start: int = self._session.value("claims.next_start", {"queue": request.queue})
            limit = min(limit, allowed(rule.rate, next_start, now))
            if limit == 0:
                committed.next_due[request.queue] = next_start
                return
        if request.wait_micros:
            limit = self._whole_batches(request, limit, now)
        taken = self._take(request, limit, committed, now) if limit else 0
        if taken:
            extra = sum(max(len(each.body) - 1, 0) // OPERATION_BYTES for each in committed.claimed[-taken:])
            tally.of(request.queue)[OPERATIONS] += taken + extra
        if rule.rate and taken:
            start = moved(rule.rate, next_start, now, taken)
            self._session.change("claims.note_start", {"queue": request.queue, "start": start})
            if taken < request.limit:
                first = self._session.next_due(request.queue, now)
                committed.next_due[request.queue] = None if first is None else max(first, start)
        elif taken < request.limit:
            first = self._session.next_due(request.queue, now)
            if request.wait_micros and first is not None and first <= now:
                first = self._next_batch(request)
            committed.next_due[request.queue] = first
        if request.request is not None and taken:
            self._note_request(request, committed.number, now)

    def _take(self, request: ClaimRequest, limit: int, committed: Committed, now: int) -> int:
        claims = self._claims.get(request.queue, 0) + 1
        priorities = PRIORITIES if claims % LOWEST_FIRST_EVERY else PRIORITIES[::-1]
        holder = PULLED if request.pull else self._session.worker
        rows = self._session.take(request, limit, priorities, holder=holder, number=committed.number, now=now)
        if rows:
            self._claims[request.queue] = claims
            taken = [*map(_delivery, rows)]
            committed.number = committed.number or taken[0].token
            committed.claimed += taken
        return len(rows)

    def _whole_batches(self, request: ClaimRequest, limit: int, now: int) -> int:
        """How many rows may be taken now: whole batches, and the rest once its oldest has waited long enough."""
        ready = 0
        oldest = now
        for priority in PRIORITIES:
            probe = {"queue": request.queue, "priority": priority, "now": now, "limit": max(limit, request.batch)}
            ((count, first),) = self._session.rows("claims.ready", probe)
            ready += count
            oldest = oldest if first is None else min(oldest, first)
        if oldest + request.wait_micros <= now:
            return limit
        most = limit - limit % request.batch or limit
        return min(most, ready // request.batch * request.batch)

    def _next_batch(self, request: ClaimRequest) -> int:
        """When the rows that wait are a batch: with the one that makes it full, or when the first has waited long enough."""
        dues: list[int] = []
        for priority in PRIORITIES:
            probe = {"queue": request.queue, "priority": priority, "limit": request.batch}
            dues += [due for (due,) in self._session.rows("claims.next_dues", probe)]
        dues.sort()
        waited = dues[0] + request.wait_micros
        return waited if len(dues) < request.batch else min(waited, dues[request.batch - 1])

    # -- pulls that are asked for again ------------------------------------------------------------------

    def _claimed_before(self, request: ClaimRequest, committed: Committed) -> bool:
        """An answer that never arrived is given again: the same rows under the same leases, as far as they are held."""
        saved = self._session.value("claims.find_request", {"scope": _scope(request), "key": request.request})
        if saved is None:
            return False
        held = {"token": msgspec.json.decode(bytes(saved)), "worker": PULLED}
        committed.claimed += map(_delivery, self._session.rows("claims.pulled", held))
        return True

    def _note_request(self, request: ClaimRequest, number: int, now: int) -> None:
        noted = {"scope": _scope(request), "key": request.request, "result": msgspec.json.encode(number), "now": now}
        self._session.change("claims.note_request", noted)

    # -- leases that have lapsed -------------------------------------------------------------------------

    def sweep(self, number: int, now: int, tally: Tally) -> int:
        """Returns rows whose lease has lapsed: their worker is stopped, cut off, or on another host and dead."""
        lapsed: list[Any] = self._session.rows("claims.lapsed", {"now": now})
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


def _scope(request: ClaimRequest) -> bytes:
    return f"pull:{request.queue}".encode()
