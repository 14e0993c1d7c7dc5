"""The committer: drains every pending unit into one transaction, with the claims of whoever is hungry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from penstock.contracts.clock import Clock
from penstock.contracts.effects import SealedUnit
from penstock.contracts.faults import Faults
from penstock.contracts.ledger import Chores, ClaimRequest, Committed, Death, Ledger, NotCommitted, Units
from penstock.model.errors import StorageFull, StoreError, StoreUnavailable
from penstock.model.usage import Measure
from penstock.runtime.groups import GroupResult, commit_group
from penstock.runtime.lanes import Lane

GROUP_UNITS_MAX = 2_000  # bounds the time of one transaction, and what a single bad unit makes us repeat
GROUP_UNITS_WAITED = 200  # so many begin their commit at once; fewer let others join for a turn of the loop
RETRY_SECONDS = (0.05, 0.5, 2.0, 3.0)  # after an I/O error whose truth is known: nothing was saved
FULL_RETRY_SECONDS = 1.0


class Claims(Protocol):
    """Who wants rows when a group is formed, and who is told what it brought."""

    def wants(self, now: int, units: Units) -> list[ClaimRequest]: ...
    def chores(self, now: int, units: Units) -> Chores: ...
    def learned(
        self, requests: list[ClaimRequest], chores: Chores, committed: Committed, waiting: dict[str, int], now: int
    ) -> None: ...
    def stop(self) -> None: ...


class Committer:
    def __init__(
        self,
        lane: Lane,
        ledger: Ledger,
        clock: Clock,
        faults: Faults,
        claims: Claims,
        *,
        on_cost: Callable[[str, Measure], None],
        on_death: Callable[[Death], None],
        on_trouble: Callable[[Exception], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._lane = lane
        self._ledger = ledger
        self._clock = clock
        self._faults = faults
        self._claims = claims
        self._on_cost = on_cost
        self._on_death = on_death
        self._on_trouble = on_trouble
        self._pending: list[SealedUnit] = []
        self._group: list[SealedUnit] = []  # under way, or the last that was
        self._busy = False
        self._scheduled = False
        self._failures = 0
        self._again: asyncio.TimerHandle | None = None  # the next try after a failure
        self._pausing = False  # until then nothing is tried, whoever asks
        self._idle = asyncio.Event()
        self._idle.set()
        self.broken: Exception | None = None
        self.saved = 0  # units, since this process began

    def put(self, unit: SealedUnit) -> None:
        """The unit is sealed: from here on it has one outcome, told to `unit.finished`."""
        if self.broken is not None:
            unit.finished(self.broken)
            return
        self._pending.append(unit)
        if not self._busy:
            self._soon()

    def _soon(self) -> None:
        if not self._scheduled:
            self._idle.clear()
            self._scheduled = True
            self._loop.call_soon(self.start)

    def start(self) -> bool:
        """Forms a group now, if none is under way and the store is not given time to recover. What comes in meanwhile
        rides in the next one. Tells whether `learned` will follow."""
        self._scheduled = False
        if self.broken is not None:
            return self._busy
        if self._busy or self._pausing:
            return True
        now = self._clock.now()
        units = self._pending[:GROUP_UNITS_MAX]
        requests = self._claims.wants(now, units)
        chores = self._claims.chores(now, units)
        if not units and not requests and not any(chores):
            self._idle.set()
            return False
        del self._pending[:GROUP_UNITS_MAX]
        self._busy = True
        self._group = units
        self._idle.clear()
        work = partial(self._commit, units, requests, now, self._clock.monotonic(), chores)
        self._lane.submit(work, partial(self._answered, requests, chores))
        return True

    def _commit(
        self, units: list[SealedUnit], requests: list[ClaimRequest], now: int, formed: float, chores: Chores
    ) -> GroupResult:
        """Runs in the lane, which may come to it late: a lease counts from its claim, not from when it was asked for."""
        late = int((self._clock.monotonic() - formed) * 1_000_000)
        return commit_group(self._ledger, units, requests, now=now + late, sweep=chores.sweep, fire=chores.fire)

    async def drained(self) -> None:
        """Returns when nothing is pending and nothing is under way."""
        while self._busy or self._pending:
            self._idle.clear()
            await self._idle.wait()

    def unknown(self) -> list[SealedUnit]:
        """Return the units of whose commit this process has not learned."""
        return [*(self._group if self._busy else ()), *self._pending]

    def close(self) -> None:
        """Refuses what comes from now on: nobody would save it."""
        if self.broken is None:
            self.broken = StoreUnavailable("The app is closed, and nothing was saved. Open it again.")
        if self._again is not None:
            self._again.cancel()

    def _answered(
        self, requests: list[ClaimRequest], chores: Chores, result: GroupResult | None, error: BaseException | None
    ) -> None:
        self._busy = False
        if error is not None:
            raise error  # our own mistake: let the worker fall over
        assert result is not None
        self._faults.at("commit.known")
        self._tell(requests, chores, result)
        if result.trouble is not None:
            self._cope(result.left, result.trouble)
            return
        self._failures = 0
        if len(self._pending) >= GROUP_UNITS_WAITED:
            self.start()
        elif self._pending:
            # Who was just told that its commit is done may have the next one ready in this turn of the loop: together they
            # are one group, apart they would go on as two halves that take turns.
            self._soon()
        elif not self._busy:
            self._idle.set()

    def _tell(self, requests: list[ClaimRequest], chores: Chores, result: GroupResult) -> None:
        now = self._clock.now()
        self.saved += len(result.saved)
        waiting: dict[str, int] = {}  # queues that have new rows, and when the first of those is due
        for committed in result.commits:
            committed.tell()
        for unit in result.saved:
            unit.committed = True
            unit.finished(None)
            unit.effects.clear()  # calls point back at their unit: a circle that only the garbage collector would open
        for unit in result.repeated:
            unit.repeated = True
            unit.finished(None)
        for unit, error in result.failed:
            unit.finished(error)
        for committed in result.commits:
            for task, measure in committed.measures:
                self._on_cost(task, measure)
            for death in committed.deaths:
                self._on_death(death)
            for queue, due in committed.waiting.items():
                waiting[queue] = min(due, waiting.get(queue, due))
        if result.commits:
            # Wants ride in the last commit of a group that had to be divided.
            result.commits[-1].claimed_at = result.now
            self._claims.learned(requests, chores, result.commits[-1], waiting, now)
        elif result.trouble is None:
            # Nothing could be saved; who counted on hearing of this group must not wait for it for ever.
            self._claims.learned([], Chores(), Committed(0), {}, now)

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
        """Settling goes on from the reserve; whatever would grow the database is refused."""
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
            # Nobody wants anything any more; who counted on hearing of the group that failed is told so.
            self._claims.learned([], Chores(), Committed(0), {}, self._clock.now())

    def _break(self, units: list[SealedUnit], error: Exception) -> None:
        """Nothing can be written any more: everybody who waits is told, and the process is to stop."""
        known = error if isinstance(error, StoreError) else StoreUnavailable(f"The database failed: {error}")
        self.broken = known
        self._claims.stop()  # its alarm would ring for ever: what is due stays due
        for unit in [*units, *self._pending]:
            unit.finished(known)
        self._pending.clear()
        self._idle.set()
