"""Queues by their names: paused, tuned, purged, looked into. Each call is a short transaction of its own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.contracts.operations import Backlog, Expired, Lease, Tuning
from penstock.model.message import PRIORITIES, Delivery
from penstock.storage.sqlite.claiming import SQL as CLAIMING
from penstock.storage.sqlite.session import PULLED, Session
from penstock.storage.sqlite.tally import DEAD, EXPIRED, PURGED, Tally
from penstock.storage.statements import load

SQL = load("penstock.storage.sqlite", "operations.sql")


class SqliteOperations:
    def __init__(self, session: Session) -> None:
        self._session = session

    def queues(self) -> list[str]:
        return [name for (name,) in self._session.connection.execute(SQL["queues"])]

    def pause(self, queue: str, *, paused: bool) -> bool:
        return self._update("pause", {"queue": queue, "paused": int(paused)})

    def tune(self, queue: str, tuning: Tuning) -> bool:
        return self._update("tune", {"queue": queue, "parallel": tuning.parallel, "rate": tuning.rate})

    def _update(self, statement: str, bound: dict[str, Any]) -> bool:
        def update() -> bool:
            self._session.connection.execute(SQL[statement], bound)
            return self._session.connection.changes() == 1

        return self._session.transact(update)

    def purge(self, queue: str, *, limit: int, now: int) -> int:
        return self._session.transact(partial(self._purge, queue, limit))

    def _purge(self, queue: str, limit: int) -> int:
        tally = Tally()
        removed = 0
        for priority in PRIORITIES:
            probe = {"queue": queue, "priority": priority, "limit": limit - removed}
            removed += self._remove("purge", probe, tally, PURGED)
        tally.save(self._session)
        return removed

    def _remove(self, statement: str, probe: dict[str, Any], tally: Tally, how: int) -> int:
        rows: list[Any] = self._session.connection.execute(SQL[statement], probe).fetchall()
        for queue, body_bytes in rows:
            tally.left(queue, how, body_bytes)
        return len(rows)

    def expire(self, *, now: int, limit: int) -> Expired:
        return self._session.transact(partial(self._expire, now, limit))

    def _expire(self, now: int, limit: int) -> Expired:
        session = self._session
        tally = Tally()
        removed = self._remove("expire", {"now": now, "limit": limit}, tally, EXPIRED)
        dead: list[Any] = session.connection.execute(SQL["expire_dead"], {"now": now, "limit": limit}).fetchall()
        for (queue,) in dead:
            counts = tally.of(queue)
            counts[DEAD] -= 1
            counts[EXPIRED] += 1
        tally.save(session)
        dues = (session.value(SQL[each]) for each in ("next_expiry", "next_dead_expiry"))
        return Expired(removed, len(dead), min((due for due in dues if due is not None), default=None))

    def leased(self, leases: Sequence[Lease]) -> list[Delivery]:
        found: list[Delivery] = []
        for lease in leases:
            bound = lease._asdict() | {"worker": PULLED}
            found += map(Delivery._make, self._session.connection.execute(SQL["leased"], bound).fetchall())
        return found

    def peek(self, queue: str, *, limit: int) -> list[tuple[int, Delivery]]:
        peeked: list[tuple[int, Delivery]] = []
        for priority in PRIORITIES:
            probe = {"queue": queue, "priority": priority, "limit": limit - len(peeked)}
            rows: list[Any] = self._session.connection.execute(SQL["peek"], probe).fetchall()
            peeked += [(due, Delivery._make(rest)) for due, *rest in rows]
        return peeked

    def backlog(self, queue: str) -> Backlog:
        session = self._session
        found: list[Any] = session.connection.execute(SQL["backlog"], {"queue": queue}).fetchall()
        ((count, size),) = found
        dues = (session.value(CLAIMING["next_due"], {"queue": queue, "priority": each}) for each in PRIORITIES)
        return Backlog(count, size, min((due for due in dues if due is not None), default=None))

    def dead(self) -> list[tuple[str, int]]:
        rows: list[Any] = self._session.connection.execute(SQL["dead"]).fetchall()
        return rows

    def aging(self, *, before: int, now: int, limit: int) -> list[tuple[str, int]]:
        def warn() -> list[tuple[str, int]]:
            rows: list[Any] = self._session.connection.execute(
                SQL["aging"], {"before": before, "now": now, "limit": limit}
            ).fetchall()
            counted: dict[str, int] = {}
            for (queue,) in rows:
                counted[queue] = counted.get(queue, 0) + 1
            return list(counted.items())

        return self._session.transact(warn)
