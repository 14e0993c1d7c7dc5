"""Answers to requests that always have the same answer: kept for a time, and asked for once by all who ask at once."""

from __future__ import annotations

import asyncio
import base64
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

import penstock as ps
from penstock_systems.gateway.app import app, db

FIND = "select call_id, content_type, body from gateway_cache where hash = :hash and expires_at > :now"
KEEP = (
    "insert into gateway_cache (hash, call_id, content_type, body, expires_at) "
    "values (:hash, :call, :kind, :body, :expires) on conflict (hash) do update "
    "set call_id = excluded.call_id, content_type = excluded.content_type, body = excluded.body, "
    "expires_at = excluded.expires_at"
)
PRUNE = (
    "delete from gateway_cache where hash in (select hash from gateway_cache where expires_at < :now order by expires_at "
    "limit 1000)"
)
KEPT_BYTES_MAX = 1_000_000  # a longer answer is not kept


class Answer(NamedTuple):
    """A good answer of a provider, and the id of the call that got it."""

    call_id: str
    content_type: str
    body: bytes


Outcome = Answer | ps.Reply  # a reply is a failure, in the shape of the caller's client

_running: dict[str, asyncio.Task[Outcome]] = {}


def hash_of(*parts: object) -> str:
    return sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


def is_deterministic(asked: Mapping[str, Any]) -> bool:
    """Return whether a chat has the same answer every time, as far as its caller is concerned."""
    return asked.get("temperature") == 0 and not asked.get("stream") and (asked.get("n") or 1) == 1


def _is_own(failure: ps.Reply) -> bool:
    """Return whether a failure is of its caller's budget, and says nothing of what another would be answered."""
    return bool(failure.content["error"]["code"] == "insufficient_quota")


async def once(hash: str, seconds: float, call: Callable[[], Awaitable[Outcome]]) -> tuple[Outcome, bool]:
    """Return the answer that is kept or under way, else that of `call`; and whether it was another's.

    A caller that leaves does not stop the call that others wait for, and one whose budget is spent refuses no other."""
    found = await db.first(FIND, hash=hash, now=await db.now())
    if found is not None:
        return Answer(found.call_id, found.content_type, base64.b64decode(found.body)), True
    while hash in _running:
        outcome = await asyncio.shield(_running[hash])
        if isinstance(outcome, Answer) or not _is_own(outcome):
            return outcome, True
    work = asyncio.get_running_loop().create_task(_kept(hash, seconds, call), context=contextvars.Context())
    _running[hash] = work
    work.add_done_callback(lambda _: _running.pop(hash, None))
    return await asyncio.shield(work), False


async def _kept(hash: str, seconds: float, call: Callable[[], Awaitable[Outcome]]) -> Outcome:
    answer = await call()
    if isinstance(answer, Answer) and len(answer.body) <= KEPT_BYTES_MAX:
        body = base64.b64encode(answer.body).decode()
        expires = await db.ago(timedelta(seconds=-seconds))
        async with app.unit():
            db.write(KEEP, hash=hash, call=answer.call_id, kind=answer.content_type, body=body, expires=expires)
    return answer


@app.cron("17 * * * *", reason="answers that expired only take up space")
async def prune_cache() -> None:
    db.write(PRUNE, now=await db.now())
