"""The books of each queue: what the engine counts, against what the rows show, at every commit; and what operators said."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

from tests.simulation.model import ACKED, DEAD, EXPIRED, PURGED, Crew, Row

if TYPE_CHECKING:
    from tests.simulation.invariants import Law

COUNTED = ("sent", "acked", "dead", "purged", "expired", "bytes")
COUNTER_OF = {ACKED: "acked", DEAD: "dead", PURGED: "purged", EXPIRED: "expired"}
SECOND = 1_000_000 - 10  # microseconds; the engine may take a moment for one or two less than it is


@dataclass(slots=True)
class Rules:
    """What the app and operators have said about a queue, as the last commit left it."""

    paused: bool = False
    rate: float | None = None
    parallel: int | None = None
    started: deque[int] = field(default_factory=deque)  # when messages were claimed under this rate, in the last second


class QueueCounts:
    def __init__(self, law: Law) -> None:
        self._law = law
        self.rules = {queue.name: Rules() for queue in law.plan.queues}
        self.shown: dict[str, Counter[str]] = {queue.name: Counter() for queue in law.plan.queues}
        self._counted: dict[str, Counter[str]] = {queue.name: Counter() for queue in law.plan.queues}
        self._touched: set[str] = set()
        self._fed: set[str] = set()

    # -- what the rows show -------------------------------------------------------------------------------

    def entered(self, row: Row, *, sent: int, fed: bool = False) -> None:
        shown = self.shown[row.queue.name]
        shown["sent"] += sent
        shown["open"] += 1
        shown["bytes"] += row.size
        self._touched.add(row.queue.name)
        if fed:
            self._fed.add(row.queue.name)

    def left(self, row: Row, state: str) -> None:
        shown = self.shown[row.queue.name]
        if state in COUNTER_OF:
            shown[COUNTER_OF[state]] += 1
        else:
            shown["sent"] -= 1  # its parts are counted in its stead
        shown["open"] -= 1
        shown["bytes"] -= row.size
        self._touched.add(row.queue.name)

    def dealt_with(self, queue: str, state: str | None) -> None:
        """A dead letter is none any more: gone for good, or back in its queue."""
        self.shown[queue]["dead"] -= 1
        if state is not None:
            self.shown[queue][COUNTER_OF[state]] += 1
        self._touched.add(queue)

    # -- what the engine counts ---------------------------------------------------------------------------

    def counted(self, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        for row, sign in ((old, -1), (new, 1)):
            if row is not None:
                self._touched.add(row["queue"])
                for name in COUNTED:
                    self._counted[row["queue"]][name] += sign * row[name]

    def close(self) -> None:
        """One commit is complete: its books must balance, and no queue that was sent to may hold more than it can."""
        expect = self._law.expect
        for queue in sorted(self._touched):
            shown, counted = self.shown[queue], self._counted[queue]
            for name in COUNTED:
                expect(
                    shown[name] == counted[name], f"{queue}: counted {counted[name]} {name}, and {shown[name]} is right"
                )
            gone = sum(shown[name] for name in COUNTER_OF.values())
            expect(shown["sent"] == shown["open"] + gone, f"{queue}: {dict(shown)} does not add up")
        for queue in sorted(self._fed):
            most = self._law.queue(queue).messages_max
            held = self.shown[queue]["open"]
            expect(most is None or held <= most, f"{queue} was sent to and holds {held}, and {most} is its bound")
        self._touched.clear()
        self._fed.clear()

    # -- what operators said ------------------------------------------------------------------------------

    def ruled(self, old: dict[str, Any] | None, new: dict[str, Any]) -> None:
        rules = self.rules[new["name"]]
        rules.paused = bool(new["paused"])
        tuned = new["parallel_tuned"]
        rules.parallel = new["parallel"] if tuned is None else tuned
        rules.rate = new["rate"] if new["rate_tuned"] is None else new["rate_tuned"]
        if old is not None and old["next_start"] and not new["next_start"]:
            rules.started.clear()  # somebody has tuned it: what began under the old rate is forgotten
        if old is not None and rules.parallel is not None:
            for crew in self._law.of_process.values():
                self._law.look_for_slots(crew)
                crew.parallel[new["name"]][rules.parallel] = inf

    def claimed(self, row: Row) -> None:
        """A message was claimed just now."""
        law, rules = self._law, self.rules[row.queue.name]
        law.expect(not rules.paused, f"{row.key} was claimed while {row.queue.name} was paused")
        if rules.rate:
            now, started = law.wall(), rules.started
            started.append(now)
            while started[0] <= now - SECOND:
                started.popleft()
            fast = len(started) > max(1, int(rules.rate))
            law.expect(not fast, f"{len(started)} of {row.queue.name} began in a second, and {rules.rate:g} may")

    def learned(self, crew: Crew, queue: str) -> None:
        """A worker that claims is told how many handlers may run at once, as soon as the store answers."""
        rules, law = self.rules[queue], self._law
        known = crew.parallel[queue]
        for parallel in known:
            known[parallel] = min(known[parallel], law.now() + law.patience(6))
        assert rules.parallel is not None
        known[rules.parallel] = inf

    def begun(self, crew: Crew, queue: str) -> None:
        law = self._law
        # A worker that was paused hears the answer when it goes on.
        since = law.now() if law.now() - crew.resumed_at > law.patience(6) else -inf
        most = max(parallel for parallel, until in crew.parallel[queue].items() if until >= since)
        taken = crew.slots_taken(queue)
        law.expect(taken <= most, f"{crew.name} runs {taken} of {queue} at once, and {most} may")
