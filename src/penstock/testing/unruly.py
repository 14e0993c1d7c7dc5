"""Deliveries as a bad day brings them: out of order, and once too often by a worker that has lost its lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from random import Random
from typing import Any

from penstock.contracts.effects import OnceKey, SealedUnit
from penstock.contracts.ledger import ClaimRequest, Committed, Ledger
from penstock.model.message import Delivery
from penstock.queues.batch import Batch
from penstock.queues.handler import BatchHandler, Handler
from penstock.queues.message import Message
from penstock.queues.queue import Queue
from penstock.testing.attempts import Recorder


class Unruly:
    """A ledger whose claims arrive shuffled, doubled, or both. What it saves is what the real one saves."""

    def __init__(self, ledger: Ledger, chance: Random, *, shuffled: bool, duplicated: bool) -> None:
        self._ledger = ledger
        self._chance = chance
        self._shuffled = shuffled
        self._duplicated = duplicated
        self._doubled: set[bytes] = set()

    def commit(
        self, units: Sequence[SealedUnit], wants: Sequence[ClaimRequest], *, now: int, sweep: bool, fire: bool = False
    ) -> Committed:
        committed = self._ledger.commit(units, wants, now=now, sweep=sweep, fire=fire)
        if self._duplicated:
            committed.claimed += [ghost(each) for each in committed.claimed if self._is_doubled(each)]
        if self._shuffled:
            self._chance.shuffle(committed.claimed)
        return committed

    def find_once(self, once: OnceKey) -> bytes | None:
        return self._ledger.find_once(once)

    def _is_doubled(self, delivery: Delivery) -> bool:
        """Once for each message, or a batch that is released because of a ghost in it would meet one every time. Never a
        suspect, which has to be alone."""
        if delivery.crashes or delivery.id in self._doubled:
            return False
        self._doubled.add(delivery.id)
        return True


def ghost(delivery: Delivery) -> Delivery:
    """The same delivery as a worker has it whose lease is long over: its handler runs, and the fence lets nothing in."""
    return delivery._replace(token=-delivery.token)


def is_ghost(delivery: Delivery) -> bool:
    return delivery.token < 0


class CandidRecorder(Recorder):
    """Records the deliveries that count. Ghosts run the same handlers unseen; answers that a test has laid out are not for
    them."""

    def _recorded(
        self, queue: Queue[Any], payload_class: Any, function: Callable[..., Awaitable[object]], like: Handler | None
    ) -> Handler:
        real = super()._recorded(queue, payload_class, function, like)

        async def marked(payload: Any, message: Message[Any]) -> object:
            if not is_ghost(message.delivery):
                return await real.function(payload, message)
            if like is None:
                return None
            return await (function(payload, message) if like.takes_message else function(payload))

        return Handler(queue.name, payload_class, marked, real.name)

    def _recorded_batch(self, queue: Queue[Any], like: BatchHandler) -> BatchHandler:
        real = super()._recorded_batch(queue, like)

        async def marked(batch: Batch[Any]) -> object:
            """A batch with a ghost in it cannot be saved as a whole, so it does not count as a delivery of the others."""
            haunted = any(is_ghost(each.delivery) for each in batch)
            return await (like.function(batch) if haunted else real.function(batch))

        marked.__name__ = like.name
        return BatchHandler(queue.name, marked)
