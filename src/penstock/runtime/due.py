"""What is due, and when, as far as this process knows: the decision what the next group claims, fires and takes back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from penstock.contracts.effects import SealedUnit
from penstock.contracts.ledger import Chores, ClaimRequest, Committed, Requests, Units
from penstock.contracts.runs import NewRun
from penstock.contracts.timers import TIMERS
from penstock.model.message import Delivery, NewMessage

SWEEP_AGAIN_MICROS = 1_000_000  # when to look again for a lapsed lease that may not be swept, after a jump of the clock
NOW = 0  # a due time that has always passed: look at the next opportunity


class ClaimSource(Protocol):
    """Something that runs rows of one queue."""

    @property
    def queue(self) -> str: ...
    def claim_request(self) -> ClaimRequest | None:
        """What it would take now, if anything."""

    def tuned(self, parallel: int | None) -> None:
        """An operator has set how many handlers run at once, or left it to the app."""

    def take(self, deliveries: list[Delivery], *, full: bool, at: int) -> None:
        """What it was given, from when on, and whether there may be more."""


class DueTable:
    """A pure decision without a clock: it answers what is due, and learns the results."""

    def __init__(self) -> None:
        self.by_queue: dict[str, int | None] = {}
        self.next_timer: int | None = NOW
        self._next_lapse: int | None = NOW
        self._news: set[str] = set()
        self._first = 0

    def decide(
        self, now: int, units: Units, sources: Mapping[str, ClaimSource], *, may_sweep: bool
    ) -> tuple[list[ClaimRequest], Chores]:
        """Return what to claim and to do beside these units. They commit before the claims, in the same transaction: what
        they send can be claimed at once."""
        news, self._news = self._news, set()
        fed = self._fed(now, units)
        requests = []
        for name in self._rotated():
            due = self.by_queue[name]
            if name in fed or (due is not None and due <= now):
                request = sources[name].claim_request()
                if request is not None:
                    requests.append(request)
                elif name in news:
                    # No room, but the news may be that an operator has made some.
                    requests.append(ClaimRequest(name, 0, 0))
        lapse, timer = self._next_lapse, self.next_timer
        return requests, Chores(lapse is not None and lapse <= now and may_sweep, timer is not None and timer <= now)

    def learn(
        self, requests: Requests, chores: Chores, committed: Committed, waiting: Mapping[str, int], now: int
    ) -> list[str]:
        """Note what a group brought. `waiting` names the queues that it gave rows to, and when the first of each is due.
        Return those that other processes can work on."""
        if chores.fire:
            self.next_timer = committed.next_timer
        if requests or chores.sweep:
            self._next_lapse = committed.next_lapse
        for request in requests:
            # News that came while the claim was under way may be about a row it could not see yet: look again.
            again = request.queue not in committed.next_due or request.queue in self._news
            if request.queue in self.by_queue:
                self.by_queue[request.queue] = NOW if again else committed.next_due[request.queue]
        if committed.swept:
            self.by_queue = dict.fromkeys(self.by_queue, NOW)
        elsewhere = []
        for queue, due in waiting.items():
            if queue == TIMERS:
                self.next_timer = _sooner(self.next_timer, due)
            elif queue in self.by_queue:
                if not any(request.queue == queue for request in requests):
                    self.by_queue[queue] = _sooner(self.by_queue[queue], due)
                after = self.by_queue[queue]
                if after is None or after > now:
                    continue
            elsewhere.append(queue)
        return elsewhere

    def look(self, queues: set[str] | None) -> None:
        """There may be work in these queues; None or empty means in any."""
        if not queues or TIMERS in queues:
            self.next_timer = NOW
        for name in queues & self.by_queue.keys() if queues else self.by_queue:
            self._news.add(name)
            self.by_queue[name] = NOW

    def is_due(self, queue: str, now: int) -> bool:
        """Return whether a queue of this process may have something that is due."""
        due = self.by_queue.get(queue)
        return due is not None and due <= now

    def earliest(self, now: int, sources: Mapping[str, ClaimSource], *, may_sweep: bool) -> int | None:
        """Return the earliest moment at which a look may bring something."""
        lapse = self._next_lapse
        if lapse is not None and lapse <= now and not may_sweep:
            lapse = now + SWEEP_AGAIN_MICROS
        moments = [each for each in (lapse, self.next_timer) if each is not None]
        for name, due in self.by_queue.items():
            if due is not None and (due > now or sources[name].claim_request() is not None):
                moments.append(due)
        return min(moments, default=None)

    def _fed(self, now: int, units: Units) -> set[str]:
        """The queues with nothing due so far to which these units send something that is."""
        hungry = {name for name, due in self.by_queue.items() if due is None or due > now}
        fed: set[str] = set()
        for unit in units:
            if not hungry:
                break
            for message in _messages(unit):
                if message.queue in hungry and message.due <= now:
                    hungry.discard(message.queue)
                    fed.add(message.queue)
        return fed

    def _rotated(self) -> list[str]:
        """Each queue is asked for first in turn, so that none always gets the room that is left."""
        names = list(self.by_queue)
        if len(names) > 1:
            self._first = (self._first + 1) % len(names)
            return names[self._first :] + names[: self._first]
        return names


def _sooner(known: int | None, due: int) -> int:
    return due if known is None else min(known, due)


def _messages(unit: SealedUnit) -> Iterator[NewMessage]:
    for effect in unit.effects:
        if isinstance(effect, NewMessage):
            yield effect
        elif isinstance(effect, NewRun):
            yield effect.message
