"""What is sent through a channel, and what became of it: sent, failed, or unknown because no answer came."""

from __future__ import annotations

import asyncio
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.model.errors import Refused, Throttled, Unavailable
from penstock.model.redaction import redacted

SEND_SECONDS = 10.0  # what one call gets
TITLE_CHARACTERS_MAX = 200
TEXT_CHARACTERS_MAX = 8_000  # what a mail, a chat and a webhook of 20 kB all take
ERROR_CHARACTERS_MAX = 500
_UNSEEN = re.compile(r"[\x00-\x1f\x7f\u0085\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True, slots=True)
class Notice:
    """One message for one receiver. `to` is an address or a chat, where the channel has no receiver of its own."""

    title: str
    text: str = ""
    to: str = ""
    html: str | None = None  # of a mail, beside the text
    kind: str = "notice"  # the `type` of a webhook
    data: Mapping[str, object] = field(default_factory=dict)  # more facts, for a webhook
    at: int = 0  # when it happened, in microseconds since 1970; 0: when it is sent
    headers: Mapping[str, str] = field(default_factory=dict)  # of a mail

    @property
    def subject(self) -> str:
        """The title as one line without control characters, which can head a mail."""
        return one_line(self.title or self.text)[:TITLE_CHARACTERS_MAX]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one call. `unknown`: the notice may have arrived, because it was sent and no answer came."""

    status: Literal["sent", "failed", "unknown"]
    error: str = ""  # one line, without secrets
    provider_id: str = ""  # what the provider calls it
    retry_after: float | None = None  # seconds that the receiver asks for
    is_throttled: bool = False  # the receiver asks for fewer calls; nothing is wrong with this one
    is_permanent: bool = False  # the same call fails again
    is_gone: bool = False  # the receiver wants no more calls at all

    def raise_failure(self) -> None:
        """Raise what a queue understands unless it was sent. An unknown outcome is `Unavailable`."""
        if self.is_throttled:
            raise Throttled(self.error, retry_after=self.retry_after)
        if self.is_permanent:
            raise Refused(self.error)
        if self.status != "sent":
            raise Unavailable(self.error, retry_after=self.retry_after)


SENT = Outcome("sent")


class Flight:
    """How far one call came. From `leave()` on the receiver may have the notice, whatever happens then."""

    def __init__(self) -> None:
        self.has_left = False
        self.answer: Outcome | None = None

    def leave(self) -> None:
        self.has_left = True

    def lost(self, error: str) -> Outcome:
        """Return the outcome of a call that was cut off: its answer, if one came before."""
        return self.answer or Outcome("unknown" if self.has_left else "failed", error)


class Channel(ABC):
    """A way to a receiver. `key_seconds` is how long the receiver ignores a repeated key; 0 where it knows no keys."""

    name: str
    key_seconds: float = 0.0
    secret_env: str = ""  # the environment variable that holds its key, password or address
    seconds: float = SEND_SECONDS

    async def send(self, notice: Notice, key: str) -> Outcome:
        """Send a notice within `seconds`; never raises. The same notice has the same key on every attempt."""
        flight = Flight()
        if self.is_offline:
            return Outcome(
                "failed", f"{self.name} needs the environment variable {self.secret_env}.", is_permanent=True
            )
        try:
            async with asyncio.timeout(self.seconds):
                return await self._send(notice, key, flight)
        except TimeoutError:
            return flight.lost(f"{self.name} timed out after {self.seconds:g} s.")
        except Exception as error:
            return flight.lost(self.shown(f"{self.name}: {type(error).__name__}: {error}"))

    async def find(self, notice: Notice, key: str, since: int) -> Outcome | None:
        """Look up whether a notice of unknown outcome arrived. None: the provider cannot tell."""
        return None

    @property
    def is_offline(self) -> bool:
        """Whether its secret is missing from the environment, so that nothing can be sent."""
        return bool(self.secret_env) and not self.secret

    @property
    def secret(self) -> str:
        """The value of `secret_env`."""
        return os.environ.get(self.secret_env, "").strip() if self.secret_env else ""

    def shown(self, text: str, *secrets: str) -> str:
        """Return an error as one short line without secrets."""
        for secret in filter(None, (self.secret, *secrets)):
            text = text.replace(secret, "[redacted]")
        return one_line(redacted(text))[:ERROR_CHARACTERS_MAX]

    @abstractmethod
    async def _send(self, notice: Notice, key: str, flight: Flight) -> Outcome: ...


def one_line(text: str) -> str:
    """Return the text without line breaks, control characters and halves of characters."""
    return _UNSEEN.sub(" ", text).strip()
