"""One HTTP call of a channel: its answer, or the outcome that its failure stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.channels.channel import Channel, Flight, Outcome
from penstock.model.errors import PenstockError, Permanent, Refused, Throttled

if TYPE_CHECKING:
    from penstock.outbound.answers import Response
    from penstock.outbound.client import Client

# A gateway or a time-out on the way says nothing about what became of the request behind it.
NO_ANSWER = {408, 502, 504}


async def post(
    channel: Channel,
    http: Client,
    url: str,
    flight: Flight,
    *,
    json: object = None,
    content: bytes = b"",
    headers: Mapping[str, str] | None = None,
    secrets: tuple[str, ...] = (),
) -> Response | Outcome:
    """Post without following redirects. Neither the outcome nor its error holds a secret."""
    sent: Any = {"json": json} if json is not None else {"content": content}
    try:
        return await http.post(url, headers=headers or {}, follow=False, on_sent=flight.leave, **sent)
    except PenstockError as error:
        status, excerpt = error.facts.get("status"), error.facts.get("excerpt") or ""
        if status is None:
            reason = error.facts.get("reason") or type(error).__name__
            shown = channel.shown(f"{channel.name} cannot be reached: {reason}.")
            # Refused by our own rules, before the call or at a redirect, which was an answer.
            return Outcome("failed", shown, is_permanent=True) if isinstance(error, Refused) else flight.lost(shown)
        shown = channel.shown(f"{channel.name} answered {status}. {excerpt}", url, *secrets)
        if status in NO_ANSWER:
            return Outcome("unknown", shown)
        return Outcome(
            "failed",
            shown,
            retry_after=getattr(error, "retry_after", None),
            is_throttled=isinstance(error, Throttled),
            is_permanent=isinstance(error, Permanent),
            is_gone=status == 410,
        )


def id_of(answer: Response, *names: str) -> str:
    """Return the id that a provider gave the notice; an answer of another shape has none, and was an answer all the same."""
    try:
        found = answer.json()
        for name in names:
            found = found[name]
    except (PenstockError, KeyError, TypeError, ValueError):
        return ""
    return str(found)[:200]
