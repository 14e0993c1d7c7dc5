"""Sends notices: what is due for one person and channel goes out as one message, its intent saved before the call."""

from __future__ import annotations

import hashlib
import logging
from functools import cache
from typing import Any

import msgspec

from penstock.channels import Notice, Outcome, Recorded, join_notices, next_step
from penstock.data import text_of_micros
from penstock_systems.rentals.app import app, channels, db, settings, web
from penstock_systems.rentals.noticing import size_of
from penstock_systems.rentals.searches import Search, every
from penstock_systems.rentals.settings import NO_SOURCE, Notify

MICROS = 1_000_000
ATTEMPTS_MAX = 8
RETRY_SECONDS = 60.0
SUMMARY_AFTER = "10m"  # after the last silent match: the source's first run is over
BEST = 10  # homes named in a summary
BATCH = 100

_log = logging.getLogger("penstock.rentals")

IS_DUE = """
select 1 from notices where send_id is null and send_at <= :now limit 1
"""
IS_RETRY_DUE = "select 1 from sends where retry_at is not null and retry_at <= :now limit 1"
IS_SILENT = "select 1 from search_homes where is_silent = 1 and summarised = 0 limit 1"
DUE = """
select id, search_id, person, title, body, send_at, reason, home_id, listing_id, old, new, created_at
from notices
where send_id is null
and send_at <= :now
order by send_at, id
limit 500
"""
OF_SEND = (
    "select id, title, body, reason, home_id, created_at from notices where send_id = :send order by created_at, id"
)
TAKE = "update notices set send_id = :send where id = :id and send_id is null"
INTEND = """
insert into sends (id, person, search_id, channel, notify_json, status, attempts, intent_at, retry_at)
values (:id, :person, :search, :channel, :notify, 'intent', 1, :at, :retry)
on conflict (id) do nothing
"""
AGAIN = """
update sends
set status = 'intent', attempts = attempts + 1, retry_at = :retry,
  intent_at = case when status = 'failed' then :at else intent_at end
where id = :id
"""
ENDED = "update sends set status = :status, error = :error, retry_at = :retry, sent_at = :sent where id = :id"
MARK_SENT = "update notices set sent_at = :now where send_id = :send"
UNSETTLED = """
select id, person, search_id, channel, notify_json, status, attempts, intent_at
from sends
where retry_at is not null
and retry_at <= :now
order by retry_at
limit 100
"""
SILENT = """
select h.home_id, coalesce(h.low_total, h.low_base) as low, l.title, l.url, l.source, l.currency, l.rooms, l.area_m2
from search_homes h
join listings l on l.home_id = h.home_id
where h.search_id = :search
and h.is_silent = 1
and h.summarised = 0
and l.status <> 'gone'
order by case when coalesce(h.low_total, h.low_base) is null then 1 else 0 end, coalesce(h.low_total, h.low_base),
  h.home_id, l.id
limit 5000
"""
LAST_SILENT = """
select max(matched_at) as last, count(*) as homes
from search_homes
where search_id = :search
and is_silent = 1
and summarised = 0
"""
SUMMARISED = "update search_homes set summarised = 1 where search_id = :search and is_silent = 1 and summarised = 0"
SAVE_SUMMARY = """
insert into notices (id, search_id, person, reason, title, body, created_at, send_at)
values (:id, :search, :person, 'summary', :title, :body, :now, :now)
on conflict (id) do nothing
"""


@cache
def warn_without_sources() -> None:
    """Log, once in a process, that nothing is collected."""
    if not app.sources.sources:
        _log.warning("%s", NO_SOURCE)


async def is_something_due() -> bool:
    warn_without_sources()
    now = await db.now()
    for sql in (IS_DUE, IS_RETRY_DUE):
        if await db.exists(sql, now=now):
            return True
    return bool(await db.rows(IS_SILENT))


@app.cron("* * * * *", reason="a notice is sent in the minute in which it is due", when=is_something_due)
async def notify() -> None:
    """Summarise silent matches, send what is due, and settle what was left unknown."""
    searches = {each.id: each for each in await every()}
    await summarise(searches)
    await send_due(searches)
    await retry(searches)


async def summarise(searches: dict[str, Search]) -> None:
    """Write one notice for all homes that a search met silently: those of a source's first run, or its own."""
    before, now = await db.ago(SUMMARY_AFTER), await db.now()
    for search in searches.values():
        found = await db.first(LAST_SILENT, search=search.id)
        if found is None or not found.homes or found.last > before:
            continue
        best = {row.home_id: row for row in reversed(await db.rows(SILENT, search=search.id))}
        ranked = sorted(best.values(), key=lambda row: (row.low is None, row.low or 0.0))[:BEST]
        lines = [
            f"- {', '.join([_money(row), *size_of(row)])}: {row.title} {row.url or f'(on {row.source})'}"
            for row in ranked
        ]
        title = f"{search.name}: {found.homes} homes match"
        body = "\n".join([f"The best {len(lines)}:", *lines]) if lines else ""
        bound = {"search": search.id, "person": search.person, "title": title, "body": body, "now": now}
        async with app.unit():
            db.write(SAVE_SUMMARY, bound, id=f"{search.id} summary {found.last}")
            db.write(SUMMARISED, search=search.id)


def _money(row: Any) -> str:
    return f"{row.low:,.0f} {row.currency or ''}".strip() if row.low is not None else "price not given"


async def send_due(searches: dict[str, Search]) -> None:
    """Send what is due: all notices of one search that may be sent by now are one message."""
    now = await db.now()
    groups: dict[str, list[Any]] = {}
    for row in await db.rows(DUE, now=now):
        groups.setdefault(row.search_id, []).append(row)
    for search_id, rows in groups.items():
        search = searches.get(search_id)
        notify = Notify() if search is None else search.notify
        channel = notify.channel or settings.channel
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            send = hashlib.blake2b("\n".join(row.id for row in part).encode(), digest_size=16).hexdigest()
            moment = web.clock.now()
            bound = {"id": send, "person": part[0].person, "search": search_id, "channel": channel, "at": moment}
            async with app.unit():
                for row in part:
                    db.write(TAKE, id=row.id, send=send, expect=1)
                saved = msgspec.json.encode(notify).decode()
                db.write(INTEND, bound, notify=saved, retry=_later(moment, 1))
            await _deliver(send, channel, notify, 1)


async def retry(searches: dict[str, Search]) -> None:
    """Settle messages that failed, or whose outcome is unknown because the process died."""
    for row in await db.rows(UNSETTLED, now=await db.now()):
        notify = msgspec.json.decode(row.notify_json, type=Notify)
        channel = channels.get(row.channel)
        moment = web.clock.now()
        status: Any = "" if row.status == "intent" else row.status
        step = "hold" if channel is None else next_step(Recorded(row.intent_at, status), channel, now=moment)
        if row.attempts >= ATTEMPTS_MAX or step == "hold":
            await _end(row.id, Outcome("unknown" if step == "hold" else "failed", "given up"), retry=None)
            continue
        if step == "find" and channel is not None:
            notice = await _message(row.id, notify)
            found = await channel.find(notice, row.id, row.intent_at)
            await _end(row.id, found or Outcome("failed"), retry=_later(moment, row.attempts))
            continue
        async with app.unit():
            db.write(AGAIN, id=row.id, at=moment, retry=_later(moment, row.attempts + 1))
        await _deliver(row.id, row.channel, notify, row.attempts + 1)


async def _deliver(send: str, name: str, notify: Notify, attempts: int) -> None:
    channel = channels.get(name)
    if channel is None:
        await _end(
            send, Outcome("sent" if not name else "failed", "" if not name else f"no channel {name}"), retry=None
        )
        return
    outcome = await channel.send(await _message(send, notify), send)
    late = None if outcome.status == "sent" or outcome.is_permanent else _later(web.clock.now(), attempts)
    await _end(send, outcome, retry=late)


async def _message(send: str, notify: Notify) -> Notice:
    rows = await db.rows(OF_SEND, send=send)
    parts = [
        Notice(row.title, row.body, notify.to, kind="rentals.notice", data={"reason": row.reason, "home": row.home_id})
        for row in rows
    ]
    title = f"{len(parts)} notices about homes" if len(parts) > 1 else ""
    return join_notices(parts, title=title, kind="rentals.digest")


async def _end(send: str, outcome: Outcome, *, retry: str | None) -> None:
    now = await db.now()
    sent = outcome.status == "sent"
    async with app.unit():
        bound = {"status": outcome.status, "error": outcome.error or None, "sent": now if sent else None}
        db.write(ENDED, bound, id=send, retry=None if sent else retry)
        if sent:
            db.write(MARK_SENT, send=send, now=now)


def _later(moment: int, attempts: int) -> str:
    return text_of_micros(moment + round(RETRY_SECONDS * 2 ** min(attempts - 1, 8) * MICROS))
