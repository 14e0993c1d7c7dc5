"""One paid call: reserved in the ledger before it is made, settled after it, with a row that says who made it and why."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

import msgspec

import penstock as ps
from penstock_systems.gateway.app import app, db, paying
from penstock_systems.gateway.keys import Caller
from penstock_systems.gateway.prices import Usage

TAGS_MAX = 20
TEXT_MAX = 200
INSERT = (
    "insert into gateway_spend (id, at, caller, provider, model, prompt_tokens, completion_tokens, usd_reserved, usd, "
    "status, correlation, tags, cached, replay_of) values (:id, :now, :caller, :provider, :model, :prompt, :completion, "
    ":reserved, :usd, :status, :correlation, :tags, :cached, :replay_of) on conflict (id) do nothing"
)


class Purpose(NamedTuple):
    """Who calls what, and what for."""

    caller: Caller
    provider: str
    model: str  # or the operation
    run: str | None
    correlation: str | None
    tags: Mapping[str, str]


class Entry:
    """A call that is under way."""

    def __init__(self, purpose: Purpose, call: ps.PaidCall, at_most: float) -> None:
        self.call = call
        self._purpose = purpose
        self._at_most = at_most
        self._recording: asyncio.Future[None] | None = None

    def settle(self, usd: float, usage: Usage | None = None) -> None:
        """State what the call cost. Its row is written while the ledger settles it."""
        units = 1 if usage is None else usage.prompt_tokens + usage.completion_tokens
        self.call.settle(usd=usd, units=units)
        self._recording = asyncio.ensure_future(self._record("settled", usd, usage))

    async def recorded(self) -> None:
        """Wait until the call has its row. One that was not settled gets it now, with what the ledger made of it."""
        if self._recording is not None:
            await self._recording
            return
        end = self.call.end
        await self._record("unknown" if end is None else end.state, None if end is None else 0.0, None)

    async def _record(self, status: str, usd: float | None, usage: Usage | None) -> None:
        await record(self._purpose, self.call.id, reserved=self._at_most, usd=usd, status=status, usage=usage)


def purpose_of(caller: Caller, provider: str, model: str, headers: Mapping[str, str]) -> Purpose:
    """Read the headers `x-run-id`, `x-correlation-id` and `x-tags: article=17,brand=llc`. Raises BadParameter."""
    run, correlation = headers.get("x-run-id") or None, headers.get("x-correlation-id") or None
    tags: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in headers.get("x-tags", "").split(","))):
        name, _, value = part.partition("=")
        tags[name.strip()] = value.strip()
    for text in (run, correlation, *tags, *tags.values()):
        if text is not None and not (len(text) <= TEXT_MAX and text.isprintable()):
            raise ps.errors.BadParameter(f"A run, correlation or tag has at most {TEXT_MAX} printable characters.")
    if len(tags) > TAGS_MAX or "" in tags:
        raise ps.errors.BadParameter(f"x-tags has at most {TAGS_MAX} tags, such as `article=17,brand=llc`.")
    return Purpose(caller, provider, model, run, correlation, tags)


@asynccontextmanager
async def spending(purpose: Purpose, at_most: float) -> AsyncIterator[Entry]:
    """Reserve `at_most` dollars, yield the call, and record how it ended. Raises BudgetSpent before the block starts."""
    caller, entry = purpose.caller, None
    try:
        async with paying.paid(
            provider=purpose.provider,
            operation=purpose.model,
            at_most=at_most,
            run=purpose.run,
            correlation=purpose.correlation,
            caller=(caller.name, caller.budgets),
        ) as call:
            entry = Entry(purpose, call, at_most)
            yield entry
    finally:
        if entry is not None:
            await asyncio.shield(entry.recorded())


async def record_repeat(purpose: Purpose, of: str) -> None:
    """Record a call that was answered without the provider, from the answer to the call `of`."""
    await record(purpose, secrets.token_hex(16), reserved=0.0, usd=0.0, status="cached", of=of)


async def record_refusal(purpose: Purpose) -> None:
    """Record a call that its budget did not allow."""
    await record(purpose, secrets.token_hex(16), reserved=0.0, usd=0.0, status="refused")


async def record(
    purpose: Purpose,
    id: str,
    *,
    reserved: float,
    usd: float | None,
    status: str,
    of: str | None = None,
    usage: Usage | None = None,
) -> None:
    """Write the row of a call: what it was for, and what it cost."""
    row = {
        "id": id,
        "now": await db.now(),
        "caller": purpose.caller.name,
        "provider": purpose.provider,
        "model": purpose.model,
        "reserved": reserved,
        "usd": usd,
        "status": status,
        "correlation": purpose.correlation,
        "tags": msgspec.json.encode(purpose.tags).decode() if purpose.tags else None,
        "cached": int(of is not None),
        "replay_of": of,
        "prompt": None if usage is None else usage.prompt_tokens,
        "completion": None if usage is None else usage.completion_tokens,
    }
    async with app.unit():
        db.write(INSERT, row)
