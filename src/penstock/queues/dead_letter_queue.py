"""The dead letters of a queue are handled from a queue of their own, `<queue>-dlq`, with its own retries."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from penstock.model.envelope import Event
from penstock.model.errors import BadMessage, NoSuchLetter, TooLarge
from penstock.model.message import REPAIRED
from penstock.model.queue import QueueSettings, preset_of
from penstock.model.retry import Retry
from penstock.queues.queue import Queue

if TYPE_CHECKING:
    from penstock.app import App
    from penstock.queues.letters import DeadLetter, DeadLetters

_log = logging.getLogger("penstock.queues")

RETRIES = 100  # a database that is down for a while must not cost the news of a death


class Died(Event, type="message.died"):
    """A message has become dead letter number `letter`."""

    letter: int


def dead_letter_queue(home: App, queue: Queue[Any], letters: DeadLetters) -> Queue[Died]:
    """The queue that reports the dead letters of another queue, with its handler."""
    usual = preset_of("dead-letters")
    retry = Retry(RETRIES, home.limits.retry_first_seconds, home.limits.retry_longest_seconds)
    settings = QueueSettings(f"{queue.name}-dlq", parallel=usual.parallel, retry=retry)
    dlq = Queue[Died](home, settings, Died)

    @dlq.handler(name="dead")
    async def dead(died: Died) -> object:
        try:
            letter = await letters.get(died.letter)
        except NoSuchLetter:
            return None  # it has expired meanwhile
        if letter.resolution is not None or await _is_mended(queue, letter, letters):
            return None
        return None if queue.dead_handler is None else await queue.dead_handler(letter)

    return dlq


async def _is_mended(queue: Queue[Any], letter: DeadLetter, letters: DeadLetters) -> bool:
    if queue.repairer is None or letter.flags & REPAIRED:
        return False
    repaired = await queue.repairer(letter)
    if repaired is None:
        return False
    try:
        await letters.repair(letter, repaired, flags=REPAIRED)
    except (BadMessage, TooLarge):
        # The next attempt would fail alike: report the dead letter now.
        _log.exception("The repair of dead letter %s of %s does not fit; it stays dead.", letter.id, queue.name)
        return False
    return True
