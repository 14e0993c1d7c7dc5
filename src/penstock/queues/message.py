"""What a handler may know about the message it handles."""

from __future__ import annotations

from datetime import datetime

from penstock.model.ids import as_text
from penstock.model.message import Delivery
from penstock.model.times import from_micros


class Message:
    """A delivered message, for handlers that take it as a second parameter."""

    __slots__ = ("_delivery",)

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery

    @property
    def id(self) -> str:
        return as_text(self._delivery.id)

    @property
    def queue(self) -> str:
        return self._delivery.queue

    @property
    def type(self) -> str:
        return self._delivery.type

    @property
    def attempt(self) -> int:
        """1 on the first delivery; one more after each failure that was charged."""
        return self._delivery.attempt

    @property
    def sent_at(self) -> datetime:
        return from_micros(self._delivery.sent_at)

    @property
    def correlation_id(self) -> str:
        return as_text(self._delivery.correlation_id)

    @property
    def body(self) -> bytes:
        return self._delivery.body

    def __repr__(self) -> str:
        return f"<Message {self.id} {self.type} on {self.queue}, attempt {self.attempt}>"
