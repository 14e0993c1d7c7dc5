"""What to do next with a notice for one receiver, after whatever is recorded of the attempts before."""

from __future__ import annotations

from typing import Literal, NamedTuple

from penstock.channels.channel import Channel
from penstock.model.times import MICROS

NextStep = Literal["send", "find", "hold", "done"]
KEY_MARGIN_SECONDS = 300.0  # before the end of a key's life, for the call and for clocks that differ


class Recorded(NamedTuple):
    """What is saved of a delivery: an intent in a commit before each call, its outcome in another one after it.

    An intent without an outcome is unknown: the process died between the two."""

    intent_at: int  # of the first attempt since the outcome was last known
    status: Literal["", "sent", "failed", "unknown"] = ""


def next_step(
    recorded: Recorded | None, channel: Channel, *, now: int, unknown: Literal["hold", "resend"] = "hold"
) -> NextStep:
    """Return whether to send, to look up, to hold for a person, or nothing.

    An unknown outcome is sent again with the same key while the receiver honours it, then looked up. What cannot be looked
    up is held, or sent again where `unknown` says so."""
    if recorded is None or recorded.status == "failed":
        return "send"
    if recorded.status == "sent":
        return "done"
    if -KEY_MARGIN_SECONDS <= (now - recorded.intent_at) / MICROS < channel.key_seconds - KEY_MARGIN_SECONDS:
        return "send"
    if type(channel).find is not Channel.find:
        return "find"
    return "hold" if unknown == "hold" else "send"
