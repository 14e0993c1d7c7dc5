"""Whoever handles a queue's dead letters does so from a queue of its own, `<queue>-dlq`, with retries of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.model.envelope import Event
from penstock.model.errors import NoSuchLetter
from penstock.model.message import REPAIRED
from penstock.model.presets import preset
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.queues.queue import Home, Queue

if TYPE_CHECKING:
    from penstock.queues.letters import DeadLetters

RETRIES = 100  # a database that is down for a while must not cost the news of a death


class Died(Event, type="message.died"):
    """A message has become dead letter number `letter`."""

    letter: int


def dead_letter_queue(home: Home, queue: Queue, letters: DeadLetters) -> Queue:
    """The queue that tells of the deaths in another, with its handler."""
    usual = preset("dead-letters")
    retry = Retry(RETRIES, home.limits.retry_first_seconds, home.limits.retry_longest_seconds)
    settings = QueueSettings(f"{queue.name}-dlq", parallel=usual.parallel, retry=retry, accepts=("message.died",))
    dlq = Queue(home, settings, [Died])

    @dlq.on(Died, name="dead")
    async def dead(died: Died) -> None:
        try:
            letter = await letters.get(died.letter)
        except NoSuchLetter:
            return  # it has expired meanwhile
        if letter.resolution is not None:
            return
        if queue.repairer is not None and not letter.flags & REPAIRED:
            mended = await queue.repairer(letter)
            if mended is not None:
                await letters.fixed(letter, mended, flags=REPAIRED)
                return
        if queue.dead_handler is not None:
            await queue.dead_handler(letter)

    return dlq
