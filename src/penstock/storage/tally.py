"""What one transaction adds to the counters of each queue, and the queues it gave rows to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter

from penstock.contracts.ledger import Committed, Death
from penstock.model.message import Delivery, NewMessage
from penstock.model.prices import OPERATION_BYTES
from penstock.model.usage import Measure
from penstock.storage.session import Session

SENT, ACKED, DEAD, PURGED, EXPIRED, BYTES, OPERATIONS = range(7)
NAMES = ("sent", "acked", "dead", "purged", "expired", "bytes")
NOTHING = [0] * 7

_queue_of = attrgetter("queue")
_body_of = attrgetter("body")
_due_of = attrgetter("due")


class Tally:
    """`bytes` is what bodies add to the backlog; operations are counted as platforms bill them."""

    def __init__(self) -> None:
        self.by_queue: dict[str, list[int]] = {}
        self.deaths: list[Death] = []
        self.waiting: dict[str, int] = {}  # queues that got rows, and when the first of those is due

    def of(self, queue: str) -> list[int]:
        counts = self.by_queue.get(queue)
        if counts is None:
            counts = self.by_queue[queue] = NOTHING.copy()
        return counts

    def bulk(self, rows: Sequence[NewMessage | Delivery], how: int) -> None:
        """Many messages were sent, or acknowledged."""
        by_queue = Counter(map(_queue_of, rows))
        for queue, count in by_queue.items():
            alike = rows if len(by_queue) == 1 else [row for row in rows if row.queue == queue]
            sizes = list(map(len, map(_body_of, alike)))
            counts = self.of(queue)
            counts[how] += count
            counts[BYTES] += sum(sizes) if how == SENT else -sum(sizes)
            counts[OPERATIONS] += count if max(sizes) <= OPERATION_BYTES else sum(map(_parts, sizes))
            if how == SENT:
                self.waits(queue, min(map(_due_of, alike)))

    def left(self, queue: str, how: int, body_bytes: int) -> None:
        """A message has left the backlog: acked, dead, purged or expired."""
        counts = self.of(queue)
        counts[how] += 1
        counts[BYTES] -= body_bytes
        counts[OPERATIONS] += _parts(body_bytes)

    def entered(self, queue: str, body_bytes: int, due: int, *, sent: int = 1) -> None:
        """A message has entered the backlog by another way than a send."""
        counts = self.of(queue)
        counts[SENT] += sent
        counts[BYTES] += body_bytes
        counts[OPERATIONS] += _parts(body_bytes)
        self.waits(queue, due)

    def waits(self, queue: str, due: int) -> None:
        """A row of this queue is due then."""
        self.waiting[queue] = min(due, self.waiting.get(queue, due))

    def save(self, session: Session) -> None:
        for queue, counts in self.by_queue.items():
            if any(counts[:OPERATIONS]):  # nothing, if all that was sent was there already
                added = dict(zip(NAMES, counts, strict=False)) | {"queue": queue, "worker": session.worker}
                session.change_last("ledger.count", added)

    def tell(self, committed: Committed) -> None:
        committed.waiting = self.waiting
        committed.deaths = self.deaths
        for queue, counts in self.by_queue.items():
            if counts[OPERATIONS]:
                spent = Measure("penstock:queue_operations", counts[OPERATIONS], 0, 0, 0, 0, 0.0)
                committed.measures.append((f"queue:{queue}", spent))


def _parts(body_bytes: int) -> int:
    return 1 + max(body_bytes - 1, 0) // OPERATION_BYTES
