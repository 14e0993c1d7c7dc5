"""The scheduler: forms groups of pending units, claims and due work, has each committed, and passes on what it brought.

It has no task: it is called when something happened, and sets one timer for the earliest due row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractContextManager
from functools import partial

from penstock.contracts.clock import Clock
from penstock.contracts.effects import Joined, SealedUnit
from penstock.contracts.faults import Faults
from penstock.contracts.ledger import Chores, ClaimRequest, Committed, Death, Ledger, NotCommitted, WouldWait
from penstock.model.errors import StorageFull, StoreError, StoreUnavailable
from penstock.model.message import Delivery
from penstock.model.usage import Measure
from penstock.runtime.due import NOW, ClaimSource, DueTable
from penstock.runtime.gate import Gate
from penstock.runtime.groups import CommitGroup, GroupResult, commit_group, tell
from penstock.runtime.lanes import Lane

GROUP_UNITS_MAX = 2_000  # bounds the time of one transaction, and what a single bad unit makes us repeat
GROUP_UNITS_WAITED = 200  # a group of this size commits at once; a smaller one waits a turn of the loop for more
RETRY_SECONDS = (0.05, 0.5, 2.0, 3.0)  # after an I/O error whose truth is known: nothing was saved
FULL_RETRY_SECONDS = 1.0
# A commit on the event loop's own thread: up to this size, while small commits take less than this, and for a while not
# after one that took longer than the most.
HERE_EFFECTS_MAX = 20
HERE_CLAIMED_MAX = 100
HERE_SECONDS = 0.0015
HERE_SECONDS_MAX = 0.005
HERE_PAUSE_SECONDS = 0.1
HERE_SHARE = 0.2  # of the last one in the usual time
STRAY_SECONDS = 0.01  # a timer this far from its row's due time is set anew

Pull = tuple[ClaimRequest, "asyncio.Future[Committed]"]


class Scheduler:
    def __init__(
        self,
        lane: Lane,
        ledger: Ledger,
        clock: Clock,
        faults: Faults,
        *,
        gate: Gate,
        at_once: Callable[[], AbstractContextManager[bool]],
        may_sweep: Callable[[], bool],
        ring: Callable[[Collection[str]], None],
        on_cost: Callable[[str, Measure], None],
        on_death: Callable[[Death], None],
        on_trouble: Callable[[Exception], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._lane = lane
        self._ledger = ledger
        self._clock = clock
        self._faults = faults
        self._gate = gate
        self._at_once = at_once
        self._may_sweep = may_sweep
        self._ring = ring
        self._on_cost = on_cost
        self._on_death = on_death
        self._on_trouble = on_trouble
        self._due = DueTable()
        self._sources: dict[str, ClaimSource] = {}
        self._pending: list[SealedUnit] = []
        self._pulls: list[Pull] = []
        self._group = CommitGroup([])  # under way, or the last that was
        self._busy = False
        self._scheduled = False
        self._failures = 0
        self._again: asyncio.TimerHandle | None = None  # the next try after a failure
        self._pausing = False  # until then the scheduler tries nothing
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._is_small = False  # the group under way
        self._usual_seconds = 2 * HERE_SECONDS  # of a small commit; it has to be seen to be quick first
        self._here_from = 0.0
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopped = True  # nothing is claimed, fired or taken back; units and pulls commit all the same
        self.on_stop: set[Callable[[], None]] = set()
        self.broken: Exception | None = None
        self.saved = 0  # units, since this process began

    # -- what comes in ---------------------------------------------------------------------------------

    def put(self, unit: SealedUnit) -> None:
        """The unit is sealed: from here on it has one outcome, passed to `unit.finished`."""
        if self.broken is not None:
            unit.finished(self.broken)
            return
        self._pending.append(unit)
        if not self._busy:
            self._soon()

    async def pull(self, request: ClaimRequest) -> list[Delivery]:
        """Lease rows to a client outside. Raises NotCommitted, or the failure of the store, and then nothing is leased."""
        if self.broken is not None:
            raise self.broken
        answer: asyncio.Future[Committed] = self._loop.create_future()
        self._pulls.append((request, answer))
        if not self._busy:
            self._soon()
        return [delivery for delivery in (await answer).claimed if delivery.queue == request.queue]

    def begin(self, sources: Iterable[ClaimSource]) -> None:
        self.stopped = False
        for source in sources:
            self._sources[source.queue] = source
        self._due.by_queue = dict.fromkeys(self._sources, NOW)
        self.start()

    def stop(self) -> None:
        self.stopped = True
        for callback in tuple(self.on_stop):
            callback()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def look(self, queues: set[str] | None = None) -> None:
        """There may be work in these queues; None or empty means in any."""
        if not self.stopped:
            self._due.look(queues)
            self.start()

    def freed(self, queue: str) -> None:
        """A source has room again."""
        if not self.stopped and self._due.is_due(queue, self._clock.now()):
            self.start()

    def expects_now(self) -> bool:
        """Return whether any queue may have something that is due."""
        now = self._clock.now()
        return any(self._due.is_due(queue, now) for queue in self._sources)

    async def drained(self) -> None:
        """Return when nothing is pending and nothing is under way."""
        while self._busy or self._pending or self._pulls:
            self._idle.clear()
            await self._idle.wait()

    def unknown(self) -> list[SealedUnit]:
        """Return the units of whose commit this process has not learned."""
        return [*(self._group.units if self._busy else ()), *self._pending]

    def close(self) -> None:
        """Refuse units from now on: no commit would save them."""
        if self.broken is None:
            self.broken = StoreUnavailable("The app is closed, and nothing was saved. Open it again.")
        self._refuse_pulls(self.broken)
        if self._again is not None:
            self._again.cancel()

    # -- one group after the other ---------------------------------------------------------------------

    def _soon(self) -> None:
        if not self._scheduled:
            self._idle.clear()
            self._scheduled = True
            self._loop.call_soon(self.start)

    def start(self) -> bool:
        """Form a group now, if none is under way and the store is not given time to recover. What comes in meanwhile rides
        in the next one. Return whether the timer is set anew without the caller."""
        self._scheduled = False
        if self.broken is not None:
            return self._busy
        if self._busy or self._pausing:
            return True
        group = self._next_group(self._clock.now())
        if not (group.units or group.requests or any(group.chores)):
            self._idle.set()
            return False
        self._busy = True
        self._group = group
        self._idle.clear()
        formed = self._clock.monotonic()
        if self._fits_here(group, formed) and (result := self._commit_here(group, formed)) is not None:
            self._answered(result, None)
        else:
            self._lane.submit(partial(self._commit, group, formed), self._answered)
        return True

    def _fits_here(self, group: CommitGroup, now: float) -> bool:
        """Whether a thread would cost more than it saves: one small unit of the engine's own statements, nothing else under
        way, and a disk that has been quick."""
        if len(group.units) != 1 or self._gate.running or not self._lane.is_idle:
            return False
        (unit,) = group.units
        if (
            len(unit.effects) > HERE_EFFECTS_MAX
            or any(group.chores)
            or any(isinstance(each, Joined) for each in unit.effects)
        ):
            return False
        self._is_small = sum(request.limit for request in group.requests) <= HERE_CLAIMED_MAX
        return self._is_small and self._usual_seconds < HERE_SECONDS and now >= self._here_from

    def _commit_here(self, group: CommitGroup, formed: float) -> GroupResult | None:
        """None if it would have to wait: then nothing was saved."""
        with self._at_once() as free:
            result = self._commit(group, formed) if free else None
        if result is not None and isinstance(result.trouble, WouldWait):
            self._here_from = self._clock.monotonic() + HERE_PAUSE_SECONDS
            return None
        return result

    def _next_group(self, now: int) -> CommitGroup:
        units = self._pending[:GROUP_UNITS_MAX]
        del self._pending[:GROUP_UNITS_MAX]
        requests, chores = list[ClaimRequest](), Chores()
        if not self.stopped:
            requests, chores = self._due.decide(now, units, self._sources, may_sweep=self._may_sweep())
        self._pulls = [pull for pull in self._pulls if not pull[1].done()]  # those whose callers still wait
        if not self._pulls:
            return CommitGroup(units, requests, chores, now)
        # What is claimed of its queue is the client's.
        pull, answer = self._pulls.pop(0)
        requests = [request for request in requests if request.queue != pull.queue]
        return CommitGroup(units, [*requests, pull], chores, now, answer)

    def _commit(self, group: CommitGroup, formed: float) -> GroupResult:
        """Runs in the lane, which may come to it late: a lease counts from its claim, not from when it was asked for."""
        began = self._clock.monotonic()
        result = commit_group(self._ledger, group._replace(now=group.now + int((began - formed) * 1_000_000)))
        result.seconds = self._clock.monotonic() - began
        return result

    def _answered(self, result: GroupResult | None, error: BaseException | None) -> None:
        self._busy = False
        if error is not None:
            raise error  # our own mistake: let the worker fall over
        assert result is not None
        self._faults.at("commit.known")
        self._note_seconds(result)
        self._apply(self._group, result)
        if result.trouble is not None:
            self._cope(result.left, result.trouble)
            return
        self._failures = 0
        if len(self._pending) >= GROUP_UNITS_WAITED:
            self.start()
        elif self._pending or self._pulls:
            # A caller whose commit has just ended may have its next unit ready in this turn of the loop: together they
            # are one group, apart they would go on as two halves that take turns.
            self._soon()
        elif not self._busy:
            self._idle.set()

    def _note_seconds(self, result: GroupResult) -> None:
        """How long a small commit takes of late. After a slow or failed one the lane does the next ones."""
        if self._is_small:
            self._usual_seconds += (result.seconds - self._usual_seconds) * HERE_SHARE
            self._is_small = False
        if result.seconds > HERE_SECONDS_MAX or result.trouble is not None:
            self._here_from = self._clock.monotonic() + HERE_PAUSE_SECONDS

    def _apply(self, group: CommitGroup, result: GroupResult) -> None:
        """Pass on what a group brought: to its units, the client that pulls, the meter, other processes and the sources."""
        now = self._clock.now()
        self.saved += len(result.saved)
        for committed in result.commits:
            tell(committed)
        for unit in result.saved:
            unit.committed = True
            unit.finished(None)
            unit.effects.clear()  # calls point back at their unit: a circle that only the garbage collector would open
        for unit in result.repeated:
            unit.repeated = True
            unit.finished(None)
        for unit, error in result.failed:
            unit.finished(error)
        waiting: dict[str, int] = {}
        for committed in result.commits:
            for task, measure in committed.measures:
                self._on_cost(task, measure)
            for death in committed.deaths:
                self._on_death(death)
            for queue, due in committed.waiting.items():
                waiting[queue] = min(due, waiting.get(queue, due))
        if result.commits:
            # Claims ride in the last commit of a group that had to be divided.
            last = result.commits[-1]
            elsewhere = self._due.learn(group.requests, group.chores, last, waiting, now)
            self._deal(group, last, result.now)
            if elsewhere:
                self._ring(elsewhere)
        if result.commits or result.trouble is None:
            self.arm()
        if group.pull is not None and not group.pull.done():
            if result.commits and result.trouble is None:
                group.pull.set_result(result.commits[-1])
            else:
                group.pull.set_exception(result.trouble or NotCommitted("The claim rode in a group that failed."))

    def _deal(self, group: CommitGroup, committed: Committed, at: int) -> None:
        """Give the sources what was claimed for them."""
        by_queue: dict[str, list[Delivery]] = {}
        for delivery in committed.claimed:
            by_queue.setdefault(delivery.queue, []).append(delivery)
        for request in group.requests:
            if not request.pull:
                source = self._sources[request.queue]
                source.tuned(committed.parallel.get(request.queue))
                if claimed := by_queue.get(request.queue):
                    source.take(claimed, full=request.queue not in committed.next_due, at=at)

    # -- the timer -------------------------------------------------------------------------------------

    def arm(self) -> None:
        """Set the timer for the earliest moment at which a look may bring something."""
        if self.stopped:
            return
        now = self._clock.now()
        earliest = self._due.earliest(now, self._sources, may_sweep=self._may_sweep())
        delay = 0.0 if earliest is None else max(0, earliest - now) / 1_000_000
        if self._timer is not None:
            # The timer runs on the steady clock: after a jump of the other one it is set anew for the same row.
            strayed = abs(self._timer.when() - self._loop.time() - delay) > STRAY_SECONDS
            if earliest == self._timer_at and not strayed:
                return
            self._timer.cancel()
            self._timer = None
        if earliest is not None:
            self._timer_at = earliest
            self._timer = self._loop.call_later(delay, self._fire)

    def _fire(self) -> None:
        self._timer = None
        if not self.start():
            self.arm()

    # -- when the store is to blame ---------------------------------------------------------------

    def _cope(self, left: list[SealedUnit], trouble: Exception) -> None:
        self._on_trouble(trouble)
        if isinstance(trouble, StorageFull):
            self._without_space(left, trouble)
        elif isinstance(trouble, NotCommitted) and self._failures < len(RETRY_SECONDS):
            self._pending[:0] = left
            self._pausing = True
            self._try_again_in(RETRY_SECONDS[self._failures])
            self._failures += 1
        else:
            self._break(left, trouble)

    def _without_space(self, units: list[SealedUnit], error: StorageFull) -> None:
        """Settle from the reserve; refuse what would grow the database."""
        settling = [unit for unit in units if not unit.grows]
        for unit in units:
            if unit.grows:
                unit.finished(error)
        self._pending[:0] = settling
        # If even settling alone found no space, wait for some; otherwise try it again at once without the rest. Who comes
        # meanwhile does not wait: what would grow is to be refused, and what would not may find space.
        self._try_again_in(FULL_RETRY_SECONDS if len(settling) == len(units) else 0)

    def _try_again_in(self, seconds: float) -> None:
        """Of several failures only the last is followed by a try: the tries of a store that stays bad do not multiply."""
        if self._again is not None:
            self._again.cancel()
        self._again = self._loop.call_later(seconds, self._try_again)

    def _try_again(self) -> None:
        self._again = None
        self._pausing = False
        if not self.start():
            self.arm()

    def _break(self, units: list[SealedUnit], error: Exception) -> None:
        """Nothing can be written any more: fail all waiting callers and stop the process."""
        known = error if isinstance(error, StoreError) else StoreUnavailable(f"The database failed: {error}")
        self.broken = known
        self.stop()  # its timer would fire for ever: what is due stays due
        for unit in [*units, *self._pending]:
            unit.finished(known)
        self._pending.clear()
        self._refuse_pulls(known)
        self._idle.set()

    def _refuse_pulls(self, error: Exception) -> None:
        for _, answer in self._pulls:
            if not answer.done():
                answer.set_exception(error)
        self._pulls.clear()
