"""A delivered message: what a handler may know about it, and the words it may say about it."""

from __future__ import annotations

import builtins
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.model.errors import PenstockError
from penstock.model.ids import as_text
from penstock.model.message import Delivery
from penstock.model.outcome import Again, Dead, Discard, Later, RetryRequested
from penstock.model.times import Span, from_micros

if TYPE_CHECKING:
    from penstock.queues.batch import BatchRunner

T_co = TypeVar("T_co", covariant=True)
ACK = object()
Said = object  # ACK, RetryRequested, Later or Discard; the first outcome about a message stands


def final_outcome(said: Said | None, ended: object, *, held_nothing: bool) -> object:
    """What becomes of a message by what was said about it and by how its handler ended. An acknowledgement outlives a
    failure only where the failure takes nothing with it."""
    if said is None:
        return ended
    if said is ACK:
        failed = isinstance(ended, BaseException | Again | Dead)
        return ended if failed and not held_nothing else None
    return said


class Message(Generic[T_co]):
    """For handlers that take it as a second parameter, and for those that take a batch."""

    __slots__ = ("_block", "_home", "body", "delivery", "outcome")

    def __init__(self, delivery: Delivery, body: T_co, home: BatchRunner | None = None) -> None:
        self.delivery = delivery
        self.body = body
        self.outcome: Said | None = None
        self._home = home
        self._block: AbstractAsyncContextManager[None] | None = None  # that is open

    # -- what is known about it -------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The same on every attempt; give it to services as an idempotency key."""
        return as_text(self.delivery.id)

    @property
    def queue(self) -> str:
        """The name of the queue it is in."""
        return self.delivery.queue

    @property
    def type(self) -> str:
        """What it is, as its class says: `app.found`."""
        return self.delivery.type

    @property
    def source(self) -> str:
        """Who sent it: the name of an app, or `http`."""
        return self.delivery.source

    @property
    def attempt(self) -> int:
        """1 on the first delivery; one more after each failure that was charged."""
        return self.delivery.attempt

    attempts = attempt

    @property
    def sent_at(self) -> datetime:
        """When it was sent; the same on every attempt."""
        return from_micros(self.delivery.sent_at)

    timestamp = sent_at

    @property
    def correlation_id(self) -> str:
        """What all messages of a chain have in common."""
        return as_text(self.delivery.correlation_id)

    @property
    def causation_id(self) -> str | None:
        """The id of the message whose handler sent this one."""
        return None if self.delivery.causation_id is None else as_text(self.delivery.causation_id)

    @property
    def replay_of(self) -> str | None:
        """The id it had before it died and was sent back."""
        return None if self.delivery.replay_of is None else as_text(self.delivery.replay_of)

    @property
    def raw(self) -> bytes:
        """The body as it is stored."""
        return self.delivery.body

    # -- what may be said about it: the first outcome stands -------------------------------------------------

    def ack(self) -> None:
        """It is done, whatever happens to the others of its batch."""
        self._say(ACK)

    def retry(self, delay: Span | None = None) -> None:
        """Deliver it again after `delay` seconds or the queue's back-off. This costs an attempt."""
        self._say(RetryRequested(delay))

    def later(self, seconds: Span) -> None:
        """Deliver it again after that many `seconds`. This costs no attempt."""
        self._say(Later(seconds))

    def discard(self, reason: str) -> None:
        """It can never succeed: it becomes a dead letter with this reason."""
        self._say(Discard(reason))

    def _say(self, outcome: Said) -> None:
        if self.outcome is None:
            self.outcome = outcome

    # -- its own unit of work inside a batch --------------------------------------------------------------

    async def __aenter__(self) -> Message[T_co]:
        if self._home is None:
            raise PenstockError(
                "`async with message:` is for batch handlers; other handlers have a unit for each message."
            )
        if self._block is not None:
            raise PenstockError(f"{self!r} is in an `async with` block already; another task may have it.")
        self._block = self._home.own_unit(self)
        try:
            await self._block.__aenter__()
        except BaseException:
            self._block = None
            raise
        return self

    async def __aexit__(
        self, kind: builtins.type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        assert self._block is not None
        block, self._block = self._block, None
        return await block.__aexit__(kind, error, trace)

    def __repr__(self) -> str:
        return f"<Message {self.id} {self.type} on {self.queue}, attempt {self.attempt}>"
