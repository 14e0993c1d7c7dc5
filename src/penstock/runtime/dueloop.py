"""The due loop: knows when the next row is due, asks for it then, and sleeps in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable
from typing import Protocol

from penstock.contracts.clock import Clock
from penstock.contracts.ledger import Chores, ClaimRequest, Committed, Units
from penstock.contracts.runs import NewRun
from penstock.contracts.timers import TIMERS
from penstock.model.message import Delivery, NewMessage

SWEEP_AGAIN_MICROS = 1_000_000  # when to look again for a lapsed lease that may not be swept, after a jump of the clock
STRAY_SECONDS = 0.01  # a timer this far from its row's due time is set anew
NOW = 0  # a due time that has always passed: look at the next opportunity


class Source(Protocol):
    """Something that runs rows of one queue."""

    @property
    def queue(self) -> str: ...
    def claim_request(self) -> ClaimRequest | None:
        """What it would take now, if anything."""
        ...

    def tuned(self, parallel: int | None) -> None:
        """An operator has set how many handlers run at once, or left it to the app."""
        ...

    def take(self, deliveries: list[Delivery], *, full: bool, at: int) -> None:
        """What it was given, from when on, and whether there may be more."""
        ...


class DueLoop:
    """Has no task: it is called when something happened, and sets one timer for the earliest due row."""

    def __init__(
        self,
        clock: Clock,
        *,
        may_sweep: Callable[[], bool],
        start: Callable[[], bool],
        ring: Callable[[Collection[str]], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._may_sweep = may_sweep
        self._start = start
        self._ring = ring
        self._sources: dict[str, Source] = {}
        self._next_due: dict[str, int | None] = {}
        self._news: set[str] = set()
        self._next_lapse: int | None = NOW
        self._next_timer: int | None = NOW
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0
        self._first = 0
        self.stopped = True
        self.on_stop: set[Callable[[], None]] = set()

    def begin(self, sources: Iterable[Source]) -> None:
        self.stopped = False
        for source in sources:
            self._sources[source.queue] = source
            self._next_due[source.queue] = NOW
        self._start()

    def stop(self) -> None:
        self.stopped = True
        for told in tuple(self.on_stop):
            told()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- asked by the committer when it forms a group -----------------------------------------------

    def wants(self, now: int, units: Units) -> list[ClaimRequest]:
        """`units` are committed in the same transaction, before the claims: what they send can be claimed at once."""
        if self.stopped:
            return []
        news, self._news = self._news, set()
        fed = self._fed(now, units)
        wanted = []
        for name in self._rotated():
            due = self._next_due[name]
            if name in fed or (due is not None and due <= now):
                request = self._sources[name].claim_request()
                if request is not None:
                    wanted.append(request)
                elif name in news:
                    # No room, but the news may be that an operator has made some.
                    wanted.append(ClaimRequest(name, 0, 0))
        return wanted

    def _fed(self, now: int, units: Units) -> set[str]:
        """The queues with nothing due so far to which these units send something that is."""
        hungry = {name for name, due in self._next_due.items() if due is None or due > now}
        fed: set[str] = set()
        for unit in units:
            if not hungry:
                break
            for effect in unit.effects:
                message = effect.message if isinstance(effect, NewRun) else effect
                if isinstance(message, NewMessage) and message.queue in hungry and message.due <= now:
                    hungry.discard(message.queue)
                    fed.add(message.queue)
        return fed

    def chores(self, now: int, units: Units) -> Chores:
        if self.stopped:
            return Chores()
        sweep = self._next_lapse is not None and self._next_lapse <= now and self._may_sweep()
        timer = self._next_timer
        return Chores(sweep, timer is not None and timer <= now)

    def _rotated(self) -> list[str]:
        """Each queue is asked for first in turn, so that none always gets the room that is left."""
        names = list(self._sources)
        if len(names) > 1:
            self._first = (self._first + 1) % len(names)
            return names[self._first :] + names[: self._first]
        return names

    # -- told what happened --------------------------------------------------------------------------

    def learned(
        self, requests: list[ClaimRequest], chores: Chores, committed: Committed, waiting: dict[str, int], now: int
    ) -> None:
        """A group has committed. `waiting` names the queues it gave new rows to and when the first of them is due."""
        if chores.fire:
            self._next_timer = committed.next_timer
        if requests or chores.sweep:
            self._next_lapse = committed.next_lapse
            self._deal(requests, committed)
        if committed.swept:
            self._next_due = dict.fromkeys(self._next_due, NOW)
        elsewhere = []
        for queue, due in waiting.items():
            if queue == TIMERS and (self._next_timer is None or due < self._next_timer):
                self._next_timer = due
            if queue in self._next_due:
                if not any(request.queue == queue for request in requests):
                    self._sooner(queue, due)
                after = self._next_due[queue]
                if after is not None and after <= now:
                    elsewhere.append(queue)
            else:
                elsewhere.append(queue)
        if elsewhere:
            self._ring(elsewhere)
        self.arm()

    def _deal(self, requests: list[ClaimRequest], committed: Committed) -> None:
        by_queue: dict[str, list[Delivery]] = {}
        for delivery in committed.claimed:
            by_queue.setdefault(delivery.queue, []).append(delivery)
        for request in requests:
            full = request.queue not in committed.next_due
            # News that came while the claim was under way may be about a row it could not see yet: look again.
            again = full or request.queue in self._news
            self._next_due[request.queue] = NOW if again else committed.next_due[request.queue]
            source = self._sources[request.queue]
            source.tuned(committed.parallel.get(request.queue))
            claimed = by_queue.get(request.queue)
            if claimed:
                source.take(claimed, full=full, at=committed.claimed_at)

    def _sooner(self, queue: str, due: int) -> None:
        known = self._next_due[queue]
        if known is None or due < known:
            self._next_due[queue] = due

    def look(self, queues: set[str] | None = None) -> None:
        """Somebody says that there may be work in these queues; None or empty means in any."""
        if self.stopped:
            return
        if not queues or TIMERS in queues:
            self._next_timer = NOW
        for name in queues & self._sources.keys() if queues else self._sources:
            self._news.add(name)
            self._next_due[name] = NOW
        self._start()

    def expects_now(self) -> bool:
        """Whether any queue may have something that is due."""
        now = self._clock.now()
        return any(due is not None and due <= now for due in self._next_due.values())

    def leased(self, until: int | None) -> None:
        """Rows were leased in a commit that was not the committer's: until then at the earliest."""
        if until is not None and (self._next_lapse is None or until < self._next_lapse):
            self._next_lapse = until
        self.arm()

    def freed(self, queue: str) -> None:
        """A source has room again."""
        due = self._next_due.get(queue)
        if not self.stopped and due is not None and due <= self._clock.now():
            self._start()

    def arm(self) -> None:
        """Sets the timer for the earliest moment at which a look may bring something."""
        if self.stopped:
            return
        now = self._clock.now()
        earliest = self._next_sweep(now)
        if self._next_timer is not None and (earliest is None or self._next_timer < earliest):
            earliest = self._next_timer
        for name, due in self._next_due.items():
            if due is None or (due <= now and self._sources[name].claim_request() is None):
                continue
            if earliest is None or due < earliest:
                earliest = due
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
            self._timer = self._loop.call_later(delay, self._ring_the_alarm)

    def _next_sweep(self, now: int) -> int | None:
        lapse = self._next_lapse
        if lapse is not None and lapse <= now and not self._may_sweep():
            return now + SWEEP_AGAIN_MICROS
        return lapse

    def _ring_the_alarm(self) -> None:
        self._timer = None
        if not self._start():
            self.arm()
