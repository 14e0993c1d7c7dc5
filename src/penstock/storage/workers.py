"""Worker processes in the database: enrolled, their rows returned when they die, retired with their counts kept."""

from __future__ import annotations

import os
import socket
from collections.abc import Collection, Sequence
from typing import Any

from penstock.contracts.faults import Faults
from penstock.contracts.workers import HandlerRow, Returned, WorkerRow
from penstock.model.queue import QueueSettings
from penstock.storage.dead_workers import return_rows
from penstock.storage.session import Session, StoredPart, in_transaction
from penstock.storage.tally import Tally


class StoredWorkers(StoredPart):
    def __init__(self, session: Session, faults: Faults, *, now: int) -> None:
        super().__init__(session)
        self._at = faults.at
        self._known: list[dict[str, Any]] = []
        session.worker = self._enrol({"host": socket.gethostname(), "pid": os.getpid(), "now": now})

    @in_transaction
    def _enrol(self, who: dict[str, Any]) -> int:
        me: int = self._session.value("workers.enrol", who)
        self._session.enrolled(me)
        return me

    @property
    def me(self) -> int:
        return self._session.worker

    def register_queues(self, queues: Sequence[QueueSettings]) -> list[str]:
        """Save the settings of queues. Return how they differ from what was declared before, a line a setting."""
        self._session.guarded = {queue.name: queue for queue in queues if queue.is_bounded}
        return self._declare([queue.as_row() for queue in queues])

    @in_transaction
    def _declare(self, queues: list[dict[str, Any]]) -> list[str]:
        before = {row[0]: row for row in self._session.rows("workers.declared_queues")}  # in the order of `as_row`
        self._register("workers.register_queue", queues)
        return [
            f"{queue['name']}: {setting} was {was}, is now {value}"
            for queue in queues
            for (setting, value), was in zip(queue.items(), before.get(queue["name"], ()), strict=False)
            if was != value
        ]

    def register_handlers(self, handlers: Sequence[HandlerRow]) -> None:
        self._known = [handler._asdict() | {"worker": self.me} for handler in handlers]
        self.register_again()

    @in_transaction
    def register_again(self) -> None:
        """Register again after another process took this one for dead and removed what it can run."""
        self._register("workers.register_handler", self._known)

    def _register(self, statement: str, rows: Sequence[dict[str, Any]]) -> None:
        for row in rows:
            self._session.change(statement, row)

    def knows(self, handler: HandlerRow) -> bool:
        """Whether another worker that is there runs this."""
        return self._session.value("workers.knows", handler._asdict() | {"worker": self.me}) is not None

    def return_rows(
        self, worker: int, *, started: Collection[int] | None, charged: Collection[int] = (), now: int
    ) -> Returned:
        self._at("return.before")
        returned = self._return(worker, started, charged, now)
        self._at("return.after")
        return returned

    def retire(self, worker: int, *, now: int) -> None:
        self._return(worker, (), (), now)

    @in_transaction
    def _return(self, worker: int, started: Collection[int] | None, charged: Collection[int], now: int) -> Returned:
        session = self._session
        if not session.stays_away(worker):
            return Returned()
        number = session.value("ledger.next_number")
        tally = Tally()
        returned = return_rows(session, worker, tally, started=started, charged=charged, now=now, number=number)
        tally.save(session)
        self._remove(worker)
        session.change("workers.note_time", {"now": now})
        return returned.counts(tally)

    def _remove(self, worker: int) -> None:
        self._session.change("objects.let_go_all", {"worker": worker})
        for statement in ("keep_counts", "drop_counts", "forget_handlers", "leave"):
            self._session.change(f"workers.{statement}", {"worker": worker})

    @in_transaction
    def behind(self, *, now: int, most: int | None = None) -> int:
        session = self._session
        by = max(0, int(session.value("workers.latest_time") or 0) - now)
        if most is not None and by > most:
            for statement in ("sooner_messages", "sooner_timers", "sooner_items", "sooner_rates"):
                session.change(f"workers.{statement}", {"now": now, "by": by})
            for statement in ("forget_sizes", "forget_time"):
                session.change(f"workers.{statement}", {"now": now})
        session.change("workers.note_time", {"now": now})
        return by

    def listed(self) -> list[WorkerRow]:
        return [WorkerRow(*row) for row in self._session.rows("workers.listed")]
