"""What needs an operator: each condition with the page that shows its cause, and what can be done about it there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.contracts.calls import NANOS
from penstock.contracts.history import SettledCount
from penstock.contracts.workers import WorkerRow
from penstock.data.usage import size
from penstock.model.times import day_of, month_of
from penstock.views import paces as pace_views
from penstock.views import queues as queue_views
from penstock.views import runs as run_views
from penstock.views.status import conditions
from penstock.views.view import Row, bytes_text, counted, rate_text, small_usd_text, span_text, usd_text
from penstock.web.ui.page import SQL, PageLook
from penstock.web.ui.pages_dead import CAUSE, causes_of, located_error, placed
from penstock.web.ui.pages_operation import disk_free

UNSERVED_SECONDS = 10.0  # a worker that starts takes a moment
LIMITED_SECONDS = 60.0  # of waiting before a rate limit is worth a mention
CEILING_WARNED = 0.8
SPENT = 0.995  # a share: the next call has no room
DISK_FREE_LEAST = 1_000_000_000
FAILING_MICROS, FAILING_QUEUES = 300_000_000, 3
WAITING_ERRORS = 5  # messages of each priority among which one with an error is looked for
NEWEST = 200  # dead letters from which causes are counted
PARKED = 5
WAITING_RUNS = 25  # of each priority and workflow
ORDER = ("bad", "warn", "note")
HOUR = 3_600_000_000


def item(kind: str, level: str, title: str, text: str, path: Sequence[object], action: str, **query: Any) -> Row:
    """Return one condition. `path` are the parts of the page's address."""
    place = {"path": [str(part) for part in path], "query": query}
    return {"kind": kind, "level": level, "title": title, "text": text, **place, "action": action}


async def attention(
    look: PageLook,
    rows: Sequence[Row],
    counts: Sequence[SettledCount],
    serving: dict[str, list[WorkerRow]],
    ceilings: Sequence[Row],
) -> list[Row]:
    """Return what needs an operator, the worst first."""
    found = [
        *_queues(rows, serving),
        *await _failing(look, counts),
        *await _dead(look),
        *await _runs(look, rows),
        *await _paces(look),
        *_ceilings(ceilings),
        *await _budgets(look),
        *await _workers(look),
        *await _space(look),
        *[
            item("alert", "warn", each["title"] or each["name"], "This alert is open.", *_place(look, each["name"]))
            for each in await conditions(look.reading)
            if each["is_open"]
        ],
    ]
    return sorted(found, key=lambda each: ORDER.index(each["level"]))


def _place(look: PageLook, condition: str) -> tuple[list[str], str]:
    """Return the page of a condition, and what can be done there."""
    source = condition.removeprefix("source ").partition(":")[0]
    if condition.startswith("source ") and look.reading.app is not None and look.reading.app.sources.has(source):
        return ["pages", "sources", source], "See its runs"
    return ["alerts"], "See the alert"


def _queues(rows: Sequence[Row], serving: dict[str, list[WorkerRow]]) -> Iterator[Row]:
    unserved = []
    for row in rows:
        name, oldest = row["name"], row["oldest_age_seconds"] or 0.0
        waiting = counted(row["waiting"], "message")
        if row["paused"]:
            yield item("paused", "warn", f"Queue {name} is paused", f"{waiting} wait.", ["queues", name], "Resume")
        elif not serving.get(name) and row["waiting"] and oldest > UNSERVED_SECONDS:
            unserved.append(row)
        elif row["rate"] and oldest > LIMITED_SECONDS:
            text = f"{waiting} wait, the oldest for {span_text(oldest)}, at {rate_text(row['rate'])} at most."
            yield item("rate_limited", "note", f"Queue {name} is rate limited", text, ["queues", name], "Tune the rate")
    if unserved:
        yield _unserved(unserved)


async def _failing(look: PageLook, counts: Sequence[SettledCount]) -> list[Row]:
    """Return queues whose handlers fail now, with the error of one message: they are retried, and are no dead letters yet."""
    retried: dict[str, int] = {}
    ended: dict[str, int] = {}
    for each in counts:
        if each.minute > look.now - FAILING_MICROS:
            ended[each.queue] = ended.get(each.queue, 0) + each.messages
            retried[each.queue] = retried.get(each.queue, 0) + (each.messages if each.status == "retried" else 0)
    found = []
    for name, failed in sorted(retried.items(), key=lambda each: -each[1])[:FAILING_QUEUES]:
        if failed:
            text = f"{failed:,} of {counted(ended[name], 'delivery', 'deliveries')} failed in the last 5 min and are retried."
            if error := await _waiting_error(look, name):
                text += f" {error}"
            found.append(
                item("failing", "warn", f"Handlers of queue {name} fail", text, ["queues", name], "See the errors")
            )
    return found


async def _waiting_error(look: PageLook, queue: str) -> str | None:
    """Return the error of the first message of a queue that waits for its next attempt."""
    for priority in range(3):
        for row in await look.reading.rows(SQL["waiting"], queue=queue, priority=priority, most=WAITING_ERRORS):
            if row.error_class:
                return located_error(row)
    return None


def _unserved(rows: Sequence[Row]) -> Row:
    fullest = max(rows, key=lambda row: row["waiting"])
    oldest = max(row["oldest_age_seconds"] for row in rows)
    names = ", ".join(row["name"] for row in rows[:4]) + (f" and {len(rows) - 4:,} more" if len(rows) > 4 else "")
    title = f"No worker serves queue {names}" if len(rows) == 1 else f"No worker serves {len(rows):,} queues: {names}"
    waiting = counted(sum(row["waiting"] for row in rows), "message")
    text = f"{waiting} wait, the oldest for {span_text(oldest)}. No live process has a handler for them."
    return item("unserved", "bad", title, text, ["queues", fullest["name"]], "See how to start one")


async def _dead(look: PageLook) -> Iterator[Row]:
    causes, read = await causes_of(look, most=NEWEST)
    return iter([_cause(await placed(look, each), read == NEWEST) for each in causes[:5]])


def _cause(cause: Row, is_part: bool) -> Row:
    grows, letters = cause["last_hour"], counted(cause["letters"], "dead letter")
    letters = f"{cause['letters']:,} of the newest {NEWEST:,} dead letters" if is_part else letters
    title = f"{letters} in queue {cause['queue']}" + (f", {grows:,} in the last hour" if grows else "")
    is_budget = cause["error_class"] == "BudgetSpent"
    text = cause["error"] or f"Reason: {cause['reason']}."
    text += f" at {cause['place']}" if cause["place"] else ""
    if is_budget:
        return item("budget", "bad", f"A budget is spent: {title}", text, ["cost"], "See the budget")
    query = {name: cause[name] for name in ("queue", *CAUSE) if cause[name]}
    return item("dead", "bad" if grows else "warn", title, text, ["dead"], "Find the cause", **query)


async def _runs(look: PageLook, rows: Sequence[Row]) -> list[Row]:
    found = []
    for run in await look.reading.rows(SQL["runs_paused"], before=look.now + 1, skip=0, most=PARKED):
        if run.reason != run_views.ASKED:
            text = (run.error or run.reason or "").partition("\n")[0][:200]
            title = f"Run {run.id} of {run.workflow} is parked"
            found.append(item("parked", "bad", title, text, ["runs", run.workflow, run.id], "See the difference"))
    waiting = [row["name"] for row in rows if row["name"].startswith("workflow.") and row["waiting"]]
    for name in waiting[:10]:
        runs = [
            run
            for priority in range(3)
            for run in await look.reading.rows(SQL["runs_waiting"], queue=name, priority=priority, most=WAITING_RUNS)
        ]
        if runs:
            found.append(_approval(runs, look.now))
    return found


def _approval(runs: Sequence[Any], now: int) -> Row:
    first = runs[0]
    age = span_text(max(0, now - first.started_at) / 1_000_000)
    more = f" So do {len(runs) - 1:,} more." if len(runs) > 1 else ""
    title = f"Run {first.id} waits for the signal {first.step.removeprefix('signal ')}"
    text = f"Workflow {first.workflow} has waited for {age}.{more}"
    return item("approval", "note", title, text, ["runs", first.workflow, first.id], "Send the signal")


async def _paces(look: PageLook) -> list[Row]:
    found = []
    for row in await pace_views.rows(look.reading):
        if row["closed_until"]:
            title = f"The service behind {row['name']} refuses requests"
            found.append(item("throttled", "warn", title, row["reason"], ["pace", row["name"]], "See the pace"))
    return found


def _ceilings(ceilings: Sequence[Row]) -> Iterator[Row]:
    for each in ceilings:
        share = each["used"] / each["most"] if each["most"] else 1.0
        if share < CEILING_WARNED:
            continue
        whose = each["task"] or "The app"
        amount = usd_text if each["unit"] == "usd" else lambda value: f"{value:,.0f}"
        text = f"{amount(each['used'])} of {amount(each['most'])} {each['unit'].replace('_', ' ')} this month."
        text += " Its cron tasks do not run until next month." if each["reached"] else ""
        title = f"{whose} has {'reached its ceiling' if each['reached'] else f'used {share:.0%} of its ceiling'}"
        yield item("ceiling", "bad" if each["reached"] else "warn", title, text, ["cost"], "See what uses it")


async def _budgets(look: PageLook) -> list[Row]:
    """Return budgets of paid calls that are spent, or nearly: they are declared by the app."""
    month = month_of(look.now)
    gateways = look.reading.app.gateways if look.reading.app is not None else []
    found = []
    for service, budgets in {each.service: each.budgets for each in gateways}.items():
        for scope, period, most in (("day", day_of(look.now), budgets.day), ("month", month, budgets.month)):
            rows = await look.reading.rows(SQL["spent"], service=service, scope=scope, period=period) if most else []
            used = (rows[0].reserved + rows[0].settled) / NANOS if rows else 0.0
            if most and used / most >= CEILING_WARNED:
                is_spent = used >= most * SPENT
                title = (
                    f"The budget of the {scope} for {service} is {'spent' if is_spent else f'{used / most:.0%} spent'}"
                )
                text = f"{small_usd_text(used)} of {small_usd_text(most)}. Calls wait until the next {scope}."
                found.append(item("budget", "bad" if is_spent else "warn", title, text, ["cost"], "See the budget"))
    return found


async def _workers(look: PageLook) -> list[Row]:
    gone = [each for each in await queue_views.processes(look.reading) if look.reading.is_alive(each) is False]
    if not gone:
        return []
    named = ", ".join(f"{each.id} (pid {each.pid} on {each.host})" for each in gone[:3])
    title = "A process died without a word" if len(gone) == 1 else f"{len(gone):,} processes died without a word"
    text = f"{named}{' and others' if len(gone) > 3 else ''}. The next worker that starts releases what they held."
    return [item("worker_gone", "bad", title, text, ["workers"], "See the processes")]


async def _space(look: PageLook) -> list[Row]:
    cap, free = look.reading.target.config.limits.database_bytes_max, disk_free(look)
    grown = await size(look.reading, look.reading.lookout.size_bytes(), cap_bytes=cap, now=look.now)
    if free is not None and free < DISK_FREE_LEAST:
        text = f"{bytes_text(free)} are free beside the database of {bytes_text(grown.size_bytes)}."
        return [item("disk", "bad", "The disk is nearly full", text, ["system"], "See the sizes")]
    if grown.level != "ok":
        level = "bad" if grown.level == "over" else "warn"
        return [item("disk", level, "The database nears its cap", str(grown), ["system"], "See the sizes")]
    return []
