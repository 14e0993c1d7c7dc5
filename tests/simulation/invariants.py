"""The law, checked at every commit against what the simulator knows: rows, runs, workers, and who had room when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from penstock.model.retry import Retry
from penstock.testing.process import Process
from tests.simulation.model import LEASED, WAITING, Crew, Name, Order, Pull, Row, Run
from tests.simulation.plan import Plan, QueuePlan
from tests.simulation.queue_counts import QueueCounts
from tests.simulation.transaction import Transaction
from tests.simulation.watch import Change
from tests.simulation.workers import HANDLERS

LEASE_SLACK = 30.0
UNSTARTED_SECONDS = 20.0  # what has not begun within them goes back; a suspect is leased anew after half of them


class Law:
    def __init__(
        self,
        plan: Plan,
        *,
        time: Callable[[], float],
        wall: Callable[[], int],
        note: Callable[[str], None],
        broken: Callable[[str], None],
    ) -> None:
        self.plan = plan
        self._time = time
        self._wall = wall
        self._note = note
        self._broken = broken
        self._queues = {queue.name: queue for queue in plan.queues}
        self._retries = {
            queue.name: Retry(queue.retries, plan.retry_first, plan.retry_first * 4) for queue in plan.queues
        }
        self.rows: dict[Name, Row] = {}
        self.by_id: dict[bytes, list[Row]] = {}
        self.by_seq: dict[int, Row] = {}
        self.runs: dict[tuple[int, int], Run] = {}
        self.crews: dict[int, Crew] = {}
        self.of_process: dict[Process, Crew] = {}
        self.orders: dict[bytes, Order] = {}
        self.wanted: dict[bytes, list[Order]] = {}  # the orders that hold a message
        self.pulls: dict[tuple[int, int], Pull] = {}
        self.tuned = {plan.queues[act.queue].name for act in plan.acts if act.kind == "tune"}
        self.last_token = 0
        self.dealt_with = 0  # dead letters
        self.effects: Counter[str] = Counter()
        self.kept: Counter[tuple[bytes, str, str]] = Counter()  # effects that were saved with a settlement
        self.blocked_at: dict[str, float] = {}
        self.counts = QueueCounts(self)

    @property
    def open_rows(self) -> list[Row]:
        return [row for row in self.rows.values() if row.state in (WAITING, LEASED)]

    def patience(self, answers: int) -> float:
        """The seconds in which the store has surely given so many answers, whatever those outside ask it beside that."""
        return 0.01 + (answers + 2 * len(self.plan.acts)) * self.plan.latency

    def lease(self, row: Row) -> float:
        return row.queue.wall + LEASE_SLACK

    # -- one commit ---------------------------------------------------------------------------------------

    def committed(self, process: Process, changes: list[Change]) -> None:
        crew = self.of_process[process]
        if process.dead:
            self._broken(f"{crew.name} is dead and has committed")
        self.look_for_room()
        transaction = Transaction(self, crew)
        for change in changes:
            transaction.take(change)
        transaction.close()
        self.look_for_room()

    def expect(self, kept: bool, law: str) -> None:
        if not kept:
            self._broken(law)

    def note(self, text: str) -> None:
        self._note(text)

    def now(self) -> float:
        return self._time()

    def wall(self) -> int:
        return self._wall()

    def retry_of(self, row: Row) -> Retry:
        return self._retries[row.queue.name]

    def queue(self, name: str) -> QueuePlan:
        return self._queues[name]

    def handlers_of(self, queue: QueuePlan) -> list[str]:
        return sorted(HANDLERS[: queue.handlers])

    # -- wake-ups -----------------------------------------------------------------------------------------

    def look_for_room(self) -> None:
        """Notes for each queue when it last had no free place in any worker that could have run something."""
        now = self._time()
        for name in self._queues:
            if not any(self._has_room(crew, name) for crew in self.of_process.values()):
                self.blocked_at[name] = now

    def _has_room(self, crew: Crew, queue: str) -> bool:
        if queue not in crew.queues or not crew.serving or crew.died_at is not None or crew.process.paused:
            return False
        if self.counts.rules[queue].paused or crew.suspects_held or any(run.suspect for run in crew.running):
            return False
        planned, held = self._queues[queue], crew.held.get(queue, 0)
        if planned.batch == 1:
            return held < planned.parallel
        begun = [run for run in crew.running if run.row.queue is planned and run.row.token == run.token]
        return held == len(begun) and crew.slots_taken(queue) < planned.parallel

    def look_for_slots(self, crew: Crew) -> None:
        """Notes for each queue when this worker last had no slot for it: all taken, or kept free for a suspect."""
        now = self._time()
        closed = crew.suspects_held > 0 or crew.process.paused or any(run.suspect for run in crew.running)
        for name, queue in self._queues.items():
            if closed or crew.slots_taken(name) >= min([queue.parallel, *crew.parallel.get(name, ())]):
                crew.full_at[name] = now

    def starts(self, crew: Crew, row: Row) -> None:
        """What a worker has claimed begins as soon as it has a slot, and nothing begins with an old lease."""
        self.look_for_slots(crew)  # it may just have heard that there are more of them
        idle = self._time() - max(row.claimed_at, crew.full_at.get(row.queue.name, 0.0))
        bound = self.patience(8)
        self.expect(idle <= bound, f"{crew.name} held {row.key} for {idle:.3f} s and had a slot for it")
        old, suspect = self._time() - row.claimed_at, row.crashes > 0 and crew.resumed_at < row.claimed_at
        most = UNSTARTED_SECONDS / (2 if suspect else 1) + bound
        self.expect(old <= most, f"{row.key} began {old:.3f} s after it was leased")

    def waited(self, row: Row) -> float:
        """For how long a row could have been started and was not."""
        return self._time() - max(row.ready_at, self.blocked_at.get(row.queue.name, 0.0), 0.0)
