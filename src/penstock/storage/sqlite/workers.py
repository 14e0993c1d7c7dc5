"""Worker processes in the database: enrolled, their rows returned when they die, retired with their counts kept."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Sequence
from functools import partial

from penstock.contracts.faults import Faults
from penstock.contracts.workers import Returned, WorkerRow
from penstock.model.queue import QueueSettings
from penstock.storage.sqlite.returning import LEDGER, SQL, return_rows
from penstock.storage.sqlite.session import Session


class SqliteWorkers:
    def __init__(self, session: Session, faults: Faults, *, now: int) -> None:
        self._session = session
        self._at = faults.at
        who = {"host": socket.gethostname(), "pid": os.getpid(), "now": now}
        session.worker = session.transact(partial(session.value, SQL["enrol"], who))

    @property
    def me(self) -> int:
        return self._session.worker

    def register_queues(self, queues: Sequence[QueueSettings]) -> None:
        self._session.transact(partial(self._register, queues))

    def _register(self, queues: Sequence[QueueSettings]) -> None:
        for queue in queues:
            rules = {
                "name": queue.name,
                "retries": queue.retry.retries,
                "first_seconds": queue.retry.first_seconds,
                "longest_seconds": queue.retry.longest_seconds,
                "wall_seconds": queue.wall_seconds,
                "crashes_max": queue.crashes_max,
            }
            self._session.connection.execute(SQL["register_queue"], rules)

    def return_rows(
        self, worker: int, *, started: Collection[int] | None, charged: Collection[int] = (), now: int
    ) -> Returned:
        self._at("return.before")
        returned = self._session.transact(partial(self._return, worker, started, charged, now))
        self._at("return.after")
        return returned

    def retire(self, worker: int, *, now: int) -> None:
        self._session.transact(partial(self._return, worker, (), (), now))

    def _return(self, worker: int, started: Collection[int] | None, charged: Collection[int], now: int) -> Returned:
        session = self._session
        number = session.value(LEDGER["next_number"])
        returned = return_rows(session, worker, started=started, charged=charged, now=now, number=number)
        for queue, dead in returned.dead_by_queue.items():
            counted = {"queue": queue, "worker": self.me, "sent": 0, "acked": 0, "dead": dead}
            session.connection.execute(LEDGER["count"], counted)
        self._remove(worker)
        return returned.counts()

    def _remove(self, worker: int) -> None:
        for statement in ("keep_counts", "drop_counts", "leave"):
            self._session.connection.execute(SQL[statement], {"worker": worker})

    def listed(self) -> list[WorkerRow]:
        return [WorkerRow(*row) for row in self._session.connection.execute(SQL["listed"])]
