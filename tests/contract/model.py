"""The ledger in sixty lines of dictionaries: what every store must do, without a store."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tests.contract.inspection import Counted

Row = bytes  # a message is known by its id


@dataclass(slots=True)
class Waiting:
    queue: str
    priority: int
    due: int
    holder: int | None = None
    token: int = 0
    attempts: int = 0
    crashes: int = 0


@dataclass(slots=True)
class Model:
    """`crashes_max` and `retries` hold for every queue."""

    crashes_max: int
    retries: int
    rows: dict[Row, Waiting] = field(default_factory=dict)
    dead: dict[Row, list[str]] = field(default_factory=dict)
    counted: dict[str, Counted] = field(default_factory=dict)

    def send(self, id: Row, queue: str, priority: int, due: int) -> None:
        if id not in self.rows:
            self.rows[id] = Waiting(queue, priority, due)
            self._count(queue, sent=1)

    def due(self, queue: str, priority: int, now: int) -> list[Row]:
        """What a claim may take, earliest first."""
        found = [
            id for id, row in self.rows.items() if (row.queue, row.priority, row.holder) == (queue, priority, None)
        ]
        return sorted((id for id in found if self.rows[id].due <= now), key=lambda id: self.rows[id].due)

    def next_due(self, queue: str) -> int | None:
        return min((row.due for row in self.rows.values() if (row.queue, row.holder) == (queue, None)), default=None)

    def take(self, id: Row, holder: int, token: int, lease_end: int) -> None:
        row = self.rows[id]
        row.holder, row.token, row.due = holder, token, lease_end

    def may_settle(self, id: Row, token: int) -> bool:
        return id in self.rows and self.rows[id].holder is not None and self.rows[id].token == token

    def done(self, id: Row) -> None:
        self._count(self.rows.pop(id).queue, acked=1)

    def again(self, id: Row, due: int, charged: bool) -> None:
        row = self.rows[id]
        row.holder, row.token, row.due, row.attempts = None, 0, due, row.attempts + charged

    def bury(self, id: Row, reason: str) -> None:
        self.dead.setdefault(id, []).append(reason)
        self._count(self.rows.pop(id).queue, dead=1)

    def give_back(self, holder: int, started: Collection[Row] | None, now: int, lapsed_by: int | None = None) -> None:
        """What a dead worker held, or what of it has lapsed by now."""
        for id, row in list(self.rows.items()):
            if row.holder != holder or (lapsed_by is not None and row.due > lapsed_by):
                continue
            row.crashes += started is None or id in started
            if row.crashes >= self.crashes_max and (started is None or id in started):
                self.bury(id, "worker_died")
            else:
                self.again(id, now, charged=False)

    def _count(self, queue: str, sent: int = 0, acked: int = 0, dead: int = 0) -> None:
        before = self.counted.get(queue, Counted())
        self.counted[queue] = Counted(before.sent + sent, before.acked + acked, before.dead + dead)
