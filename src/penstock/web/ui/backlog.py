"""What waits in queues, by counters and a few probes: the same price for ten messages and for ten million."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from penstock.contracts.history import SettledCount
from penstock.contracts.workers import WorkerRow
from penstock.views import queues as view
from penstock.views.view import Column, Row, View
from penstock.web.ui.page import SQL, PageLook

PAGE = 25  # queues
ALL_MAX = 200  # queues of the overview
LEASED_MAX = 101
SERVED_MAX = 2_000
RATE_MINUTES = 5


async def queues(look: PageLook, first: str = "", *, most: int = PAGE, internals: bool = False) -> list[Row]:
    """Return queues from one name on. `waiting` counts what is due and what is delayed; `is_exact` is false where
    more are under way than were counted."""
    found = await look.reading.rows(SQL["queues"], first=first, most=most, internal=int(internals))
    held = await look.reading.rows(SQL["leased"], most=LEASED_MAX)
    leased = {row.queue: row.leased for row in held}
    is_exact = sum(leased.values()) < LEASED_MAX
    return [_row(row, leased.get(row.name, 0), is_exact, look.now) for row in found]


def _row(row: Any, leased: int, is_exact: bool, now: int) -> Row:
    open_ = row.sent - row.acked - row.dead - row.purged - row.expired
    is_due = row.first_due is not None and row.first_due <= now
    rate = row.rate if row.rate_tuned is None else row.rate_tuned
    return {
        "name": row.name,
        "paused": bool(row.paused),
        "waiting": max(0, open_ - leased),
        "leased": leased,
        "is_exact": is_exact,
        "dead": row.dead,
        "oldest_age_seconds": (now - row.first_due) / 1_000_000 if is_due else None,
        "rate": rate or None,
        "tuned": row.rate_tuned is not None or row.parallel_tuned is not None,
        **{name: getattr(row, name) for name in ("sent", "acked", "purged", "expired")},
    }


async def served(look: PageLook) -> dict[str, list[WorkerRow]]:
    """Return the processes that serve each queue and may be alive. Their locks say whether they are."""
    workers = {each.id: each for each in await view.processes(look.reading)}
    alive = {id for id, each in workers.items() if look.reading.is_alive(each) is not False}
    found: dict[str, list[WorkerRow]] = defaultdict(list)
    for row in await look.reading.rows(SQL["served"], most=SERVED_MAX):
        if row.worker in alive:
            found[row.queue].append(workers[row.worker])
    return found


def with_rates(rows: list[Row], counts: Sequence[SettledCount], serving: dict[str, list[WorkerRow]], now: int) -> None:
    """Add how many ended a minute lately, a line of the last half hour, and how many processes serve each."""
    lately = now - RATE_MINUTES * 60_000_000
    done: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for each in counts:
        if each.status == "acked":
            done[each.queue][each.minute] += each.messages
    for row in rows:
        own = done.get(row["name"], {})
        row["done_per_minute"] = sum(each for minute, each in own.items() if minute > lately) / RATE_MINUTES
        last = now // 60_000_000 * 60_000_000
        row["done_by_minute"] = [own.get(last - back * 60_000_000, 0) for back in reversed(range(30))]
        row["served_by"] = len(serving.get(row["name"], []))
        row["state"] = state_of(row)


def state_of(row: Row) -> str:
    if row["paused"]:
        return "paused"
    if not row["served_by"] and row["waiting"]:
        return "unserved"
    if row["leased"]:
        return "running"
    return "waiting" if row["oldest_age_seconds"] is not None else "delayed" if row["waiting"] else "idle"


BACKLOG = View(
    "queues",
    (
        Column("name", "queue"),
        Column("state", "state", "state"),
        Column("waiting", "waiting", "count"),
        Column("leased", "under way", "count"),
        Column("oldest_age_seconds", "oldest", "span"),
        Column("done_per_minute", "done/min", "number"),
        Column("dead", "dead", "count"),
        Column("served_by", "workers", "count"),
    ),
    empty="No queue has been used yet.",
)
