"""The pages of queues: all of them, and one with what waits in it, why, and how it is set."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from penstock.model.errors import StoreError
from penstock.model.firing import fired_id
from penstock.model.ids import as_text
from penstock.model.times import iso_z
from penstock.views import queues as view
from penstock.views.queues import rate_text
from penstock.views.runs import PRIORITY_NAMES
from penstock.views.view import Row
from penstock.web.ui import backlog, forecast
from penstock.web.ui.page import SQL, Facts, NoSuchThing, Page, PageLook, per_minute, settled
from penstock.web.ui.pages_dead import located_error
from penstock.web.ui.reasons import reasons

SPLIT_MAX = 1_001
MESSAGES = 15  # of each kind on the page of a queue
SCANNED = 1_000  # leased rows of all queues
NAMES = 500
TASKS, TICKS, CHAIN = 100, 2, 5_000  # cron tasks, their last runs, and deliveries of each that are read
DAY = 86_400_000_000


async def queues(look: PageLook) -> Facts:
    internals = look.text("all") is not None
    found = await backlog.queues(look, look.query.get("from", ""), most=backlog.PAGE + 1, internals=internals)
    counts, serving = await settled(look), await backlog.served(look)
    backlog.with_rates(found, counts, serving, look.now)
    more = found[backlog.PAGE]["name"] if len(found) > backlog.PAGE else None
    return {"queues": found[: backlog.PAGE], "next": more, "internals": internals}


async def queue(look: PageLook) -> Facts:
    name = look.parts["name"]
    found = await backlog.queues(look, name, most=1, internals=True)
    declared = await view.queue_row(look.reading, name)
    if declared is None or not found or found[0]["name"] != name:
        known = [row["name"] for row in await backlog.queues(look, most=NAMES, internals=True)]
        near = get_close_matches(name, known, 3, 0.5)
        raise NoSuchThing(f"There is no queue {name!r}." + (f" There is {', '.join(near)}." if near else ""))
    row = found[0]
    counts, serving = await settled(look), await backlog.served(look)
    backlog.with_rates([row], counts, serving, look.now)
    (split,) = await look.reading.rows(SQL["split"], queue=name, now=look.now, most=SPLIT_MAX)
    own = [each for each in counts if each.queue == name]
    split_row = _split(row, split)
    return {
        "queue": row | split_row,
        "settings": declared.settings(),
        "tuned": {"parallel": declared.parallel_tuned, "rate": declared.rate_tuned},
        "accepts": declared.accepted(),
        "served_by": [{"id": each.id, "host": each.host, "pid": each.pid} for each in serving.get(name, [])],
        "reasons": await reasons(look, row | split_row, declared, len(serving.get(name, [])), split.failed),
        "forecast": forecast.of_queue(row | split_row, own, look.now) | {"coming": await _coming(look, name)},
        "waiting": await _waiting(look, name),
        "under_way": await _under_way(look, name),
        "minutes": {
            "done": per_minute(own, look.now, ("acked",)),
            "failed": per_minute(own, look.now, ("retried", "dead")),
        },
    }


def _split(row: Row, split: Any) -> Row:
    """Return ready and delayed. Where both are many, `ready` is the least it can be."""
    ready, delayed, exact = split.ready, split.delayed, True
    if split.delayed < SPLIT_MAX:
        ready = max(split.ready, row["waiting"] - split.delayed) if row["is_exact"] else split.ready
    elif split.ready < SPLIT_MAX:
        delayed = max(split.delayed, row["waiting"] - split.ready)
    else:
        exact = False
    return {"ready": ready, "delayed": delayed, "exact": exact}


async def _coming(look: PageLook, queue: str) -> list[Row] | None:
    """Return what cron tasks are about to add, by the messages of this queue that followed from their last run; None unless
    the address asks for it: chains are read for that."""
    if look.text("coming") is None:
        return None
    found = []
    for task in await look.reading.rows(SQL["crons"], most=TASKS):
        if task.paused or task.due > look.now + DAY:
            continue
        ticks = await look.reading.rows(SQL["ticks"], task=task.name, before=look.now, most=TICKS)
        counts = [await _followed(look, queue, fired_id("cron", task.name, tick.due, at=tick.due)) for tick in ticks]
        if any(counts):
            mean = round(sum(counts) / len(counts))
            is_more = any(count >= CHAIN for count in counts)
            found.append({"task": task.name, "at": iso_z(task.due), "messages": mean, "is_more": is_more})
    return sorted(found, key=lambda each: each["at"])


async def _followed(look: PageLook, queue: str, chain: bytes) -> int:
    try:
        entries = await look.reading.ask(lambda file: file.chain(chain, CHAIN))
    except StoreError:
        return 0
    return len({entry.id for entry in entries if entry.queue == queue})


async def _waiting(look: PageLook, queue: str) -> list[Row]:
    found: list[Any] = []
    for priority in range(3):
        found += await look.reading.rows(SQL["waiting"], queue=queue, priority=priority, most=MESSAGES)
    is_due = [row for row in found if row.due <= look.now]
    ordered = sorted(is_due, key=lambda row: (row.priority, row.due))
    ordered += sorted((row for row in found if row.due > look.now), key=lambda row: row.due)
    return [
        {
            "id": as_text(bytes(row.id)),
            "type": row.type,
            "state": "ready" if row.due <= look.now else "retrying" if row.error_class else "delayed",
            "priority": PRIORITY_NAMES[row.priority],
            "due": iso_z(row.due),
            "attempt": row.attempts + 1,
            "sent_at": iso_z(row.sent_at),
            "error": located_error(row, 160),
        }
        for row in ordered[:MESSAGES]
    ]


async def _under_way(look: PageLook, queue: str) -> list[Row]:
    rows = await look.reading.rows(SQL["under_way"], queue=queue, scanned=SCANNED, most=MESSAGES)
    return [
        {
            "id": as_text(bytes(row.id)),
            "type": row.type,
            "attempt": row.attempts + 1,
            "sent_at": iso_z(row.sent_at),
            "lease_ends_at": iso_z(row.due),
            "worker": f"{row.worker} (pid {row.pid} on {row.host})" if row.pid else "a client outside",
        }
        for row in rows
    ]


PAGES = (
    Page(
        "/queues",
        "Queues",
        queues,
        "queues.html",
        listing=backlog.BACKLOG,
        every=2.0,
        views={"backlog": backlog.BACKLOG},
    ),
    Page("/queues/{name:path}", "Queue", queue, "queue.html", every=2.0, views={"rate_text": rate_text}),
)
