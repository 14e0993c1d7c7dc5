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
    "insert into gateway_spend (id, at, caller, provider, model, usd_reserved, usd, status, correlation, tags, cached, "
    "replay_of) values (:id, :now, :caller, :provider, :model, :reserved, :usd, :status, :correlation, :tags, :cached, "
    ":replay_of)"
)
SETTLE = (
    "update gateway_spend set status = :status, usd = :usd, prompt_tokens = :prompt, completion_tokens = :completion "
    "where id = :id"
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

    def __init__(self, call: ps.PaidCall) -> None:
        self.call = call
        self.usage: Usage | None = None
        self.usd: float | None = None

    def settle(self, usd: float, usage: Usage | None = None) -> None:
        """State what the call cost."""
        units = 1 if usage is None else usage.prompt_tokens + usage.completion_tokens
        self.call.settle(usd=usd, units=units)
        self.usd, self.usage = usd, usage


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
            recorded = asyncio.ensure_future(_record(purpose, call.id, reserved=at_most))  # while the provider works
            entry = Entry(call)
            yield entry
    finally:
        if entry is not None:  # with what the ledger made of the call
            await asyncio.shield(_end(recorded, entry))


async def record_repeat(purpose: Purpose, of: str) -> None:
    """Record a call that was answered without the provider, from the answer to the call `of`."""
    await _record(purpose, secrets.token_hex(16), reserved=0.0, usd=0.0, status="cached", of=of)


async def record_refusal(purpose: Purpose) -> None:
    """Record a call that its budget did not allow."""
    await _record(purpose, secrets.token_hex(16), reserved=0.0, usd=0.0, status="refused")


async def _record(
    purpose: Purpose,
    id: str,
    *,
    reserved: float,
    usd: float | None = None,
    status: str = "reserved",
    of: str | None = None,
) -> None:
    now = await db.now()
    row = {
        "id": id,
        "now": now,
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
    }
    async with app.unit():
        db.write(INSERT, row)


async def _end(recorded: asyncio.Future[None], entry: Entry) -> None:
    await recorded
    used, end = entry.usage, entry.call.end
    row = {
        "id": entry.call.id,
        "status": "unknown" if end is None else end.state,
        "usd": None if end is None else entry.usd or 0.0,
        "prompt": None if used is None else used.prompt_tokens,
        "completion": None if used is None else used.completion_tokens,
    }
    async with app.unit():
        db.write(SETTLE, row)
