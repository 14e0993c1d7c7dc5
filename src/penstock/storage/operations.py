"""Queues by their names: paused, tuned, purged, looked into. Each call is a short transaction of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from penstock.contracts.operations import Backlog, Expired, Lease, Tuning
from penstock.model.message import PRIORITIES, Delivery
from penstock.storage.session import PULLED, StoredPart, in_transaction
from penstock.storage.tally import DEAD, EXPIRED, PURGED, Tally


class StoredOperations(StoredPart):
    def queues(self) -> list[str]:
        return [name for (name,) in self._session.rows("operations.queues")]

    def pause(self, queue: str, *, paused: bool) -> bool:
        return self._update("operations.pause", {"queue": queue, "paused": int(paused)})

    def tune(self, queue: str, tuning: Tuning) -> bool:
        return self._update("operations.tune", {"queue": queue, "parallel": tuning.parallel, "rate": tuning.rate})

    @in_transaction
    def _update(self, statement: str, bound: dict[str, Any]) -> bool:
        return self._session.change(statement, bound) == 1

    @in_transaction
    def purge(self, queue: str, *, limit: int, now: int, id: bytes | None = None) -> int:
        tally = Tally()
        removed = 0
        if id is not None:
            removed = self._remove("operations.purge_one", {"queue": queue, "id": id}, tally, PURGED)
        else:
            for priority in PRIORITIES:
                probe = {"queue": queue, "priority": priority, "limit": limit - removed}
                removed += self._remove("operations.purge", probe, tally, PURGED)
        tally.save(self._session)
        return removed

    def _remove(self, statement: str, probe: dict[str, Any], tally: Tally, how: int) -> int:
        rows = self._session.rows(statement, probe)
        for queue, body_bytes in rows:
            tally.left(queue, how, body_bytes)
        return len(rows)

    @in_transaction
    def expire(self, *, now: int, limit: int) -> Expired:
        session = self._session
        tally = Tally()
        removed = self._remove("operations.expire", {"now": now, "limit": limit}, tally, EXPIRED)
        dead: list[Any] = session.rows("operations.expire_dead", {"now": now, "limit": limit})
        for (queue,) in dead:
            counts = tally.of(queue)
            counts[DEAD] -= 1
            counts[EXPIRED] += 1
        tally.save(session)
        dues = (session.value(each) for each in ("operations.next_expiry", "operations.next_dead_expiry"))
        return Expired(removed, len(dead), min((due for due in dues if due is not None), default=None))

    def leased(self, leases: Sequence[Lease]) -> list[Delivery]:
        found: list[Delivery] = []
        for lease in leases:
            bound = lease._asdict() | {"worker": PULLED}
            found += map(Delivery._make, self._session.rows("operations.leased", bound))
        return found

    def peek(self, queue: str, *, limit: int) -> list[tuple[int, Delivery]]:
        peeked: list[tuple[int, Delivery]] = []
        for priority in PRIORITIES:
            probe = {"queue": queue, "priority": priority, "limit": limit - len(peeked)}
            rows: list[Any] = self._session.rows("operations.peek", probe)
            peeked += [(due, Delivery._make(rest)) for due, *rest in rows]
        return peeked

    def backlog(self, queue: str) -> Backlog:
        session = self._session
        ((count, size),) = session.rows("operations.backlog", {"queue": queue})
        return Backlog(count, size, session.value("claims.next_due", {"queue": queue}))

    def dead(self) -> list[tuple[str, int]]:
        return self._session.rows("operations.dead")

    @in_transaction
    def aging(self, *, before: int, now: int, limit: int) -> list[tuple[str, int]]:
        rows = self._session.rows("operations.aging", {"before": before, "now": now, "limit": limit})
        return list(Counter(queue for (queue,) in rows).items())
