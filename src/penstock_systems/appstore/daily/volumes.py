"""How often people search for a keyword, as a search engine counts it: one paid call a day, and each answer kept a month."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import msgspec

import penstock as ps
from penstock.data import cut
from penstock_systems.appstore.app import app, db, settings, web
from penstock_systems.appstore.moments import after

KEYWORDS_A_CALL = 1_000
KEPT_DAYS = 30
ASKED_CHARACTERS_MAX = 80  # of a keyword, by the service's own rule
OK = range(20_000, 20_100)

WANTED = """
select t.keyword
from tracked_keywords as t
left join dfs_keyword_cache as v on v.keyword = t.keyword
where t.keyword > ''
and length(t.keyword) <= :longest
and (v.fetched_at is null or v.fetched_at < :before)
order by t.keyword
limit :most
"""

gateway = app.gateway(budgets=ps.Budgets(month=settings.volumes.usd_a_month), service="pipeline-volumes")


class _Told(msgspec.Struct):
    """Says by a code of its own how it went."""

    status_code: int
    status_message: str = ""


class _Task(_Told):
    result: list[dict[str, Any]] | None = None


class _Reply(_Told):
    cost: float = 0.0
    tasks: list[_Task] = []


async def look_up_volumes(now: str) -> dict[str, object]:
    """Keywords that were asked for, and what that cost. Nothing where there is no login, or no money left."""
    credentials = _credentials()
    if credentials is None:
        return {"asked": 0, "reason": "no login"}
    before = after(now, days=-KEPT_DAYS)
    asked = await db.column(WANTED, before=before, longest=ASKED_CHARACTERS_MAX, most=KEYWORDS_A_CALL)
    if not asked:
        return {"asked": 0}
    try:
        answers, usd = await _ask(asked, credentials)
    except ps.BudgetSpent as error:
        return {"asked": 0, "reason": str(error)}
    async with app.unit():
        # A keyword that the service says nothing about is kept too: it would be asked for and paid for every day.
        rows = [{"keyword": each, "response": db.json(answers.get(each, {})), "fetched_at": now} for each in asked]
        db.upsert("dfs_keyword_cache", rows, key="keyword")
    return {"asked": len(asked), "answered": len(answers), "usd": usd}


async def _ask(keywords: Sequence[str], credentials: str) -> tuple[dict[str, dict[str, Any]], float]:
    service = settings.volumes
    task = {"keywords": list(keywords), "location_code": service.location_code, "language_code": service.language_code}
    url = f"{service.base.rstrip('/')}/v3/keywords_data/google_ads/search_volume/live"
    async with gateway.paid(provider="dataforseo", operation="search_volume", at_most=service.usd_a_call) as call:
        response = await web.post(url, json=[task], headers={"Authorization": f"Basic {credentials}"})
        reply = read(response.body)
        call.settle(usd=reply.cost, units=len(keywords))
    return answers_of(reply), reply.cost


def read(body: bytes) -> _Reply:
    """The reply, unless it says by its own code that it is none: the HTTP status is 200 either way."""
    try:
        reply = msgspec.json.decode(body, type=_Reply)
    except msgspec.MsgspecError as error:
        raise ps.Unparsable(f"The answer to a volume look-up cannot be read: {error}", reason="bad_shape") from error
    parts: list[_Told] = [reply, *reply.tasks]
    for part in parts:
        if part.status_code not in OK:
            text = f"The volume look-up was refused with {part.status_code}: {cut(part.status_message, 200)}"
            raise ps.Unavailable(text) if part.status_code >= 50_000 else ps.Refused(text)
    return reply


def answers_of(reply: _Reply) -> dict[str, dict[str, Any]]:
    """What is said about each keyword. Any number of it can be null."""
    found = (result for task in reply.tasks for result in task.result or [])
    return {result["keyword"]: result for result in found if isinstance(result.get("keyword"), str)}


def _credentials() -> str | None:
    login, password = (os.environ.get(name, "").strip() for name in _names())
    return b64encode(f"{login}:{password}".encode()).decode() if login and password else None


def _names() -> tuple[str, str]:
    return settings.volumes.login_env, settings.volumes.password_env
