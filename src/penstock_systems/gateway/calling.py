"""What every route of a paid call does: find the caller, share an answer where that is possible, and report a failure."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import penstock as ps
from penstock_systems.gateway import cache
from penstock_systems.gateway.app import key_of
from penstock_systems.gateway.refusals import answer_to
from penstock_systems.gateway.settings import Provider
from penstock_systems.gateway.spending import Purpose, record_refusal, record_repeat


async def answered(
    purpose: Purpose, call: Callable[[], Awaitable[cache.Outcome]], *, hash: str | None, seconds: float
) -> ps.Reply:
    """Return the answer of the call, or that of an equal one if there is a `hash` to find it by."""
    if hash is None:
        found, is_another = await call(), False
    else:
        found, is_another = await cache.once(hash, seconds, call)
    if isinstance(found, ps.Reply):
        return found
    if is_another:
        await record_repeat(purpose, found.call_id)
    headers = {"x-call-id": found.call_id, "x-cache": "hit" if is_another else "miss"}
    return ps.Reply(found.body, found.content_type, headers=headers)


async def failed(purpose: Purpose, provider: Provider, error: ps.PenstockError) -> ps.Reply:
    """Return what the caller is answered, and record a call that its budget did not allow."""
    if isinstance(error, ps.BudgetSpent):
        await record_refusal(purpose)
    try:
        key = key_of(provider)
    except ps.PenstockError:
        key = ""
    return answer_to(error, host=provider.host, key=key)
