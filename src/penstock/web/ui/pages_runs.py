"""The pages of workflows: runs in a list, one run as a Gantt chart of its steps, and two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.model.ids import as_text
from penstock.model.redaction import redacted
from penstock.model.run import ENDED, PAUSED, PENDING, QUEUED, RETRYING, RUNNING, SIGNAL, SLEEP, STATES, WAITING
from penstock.model.times import iso_z
from penstock.views import runs as view
from penstock.views.view import Column, Row, View, micros_of, short
from penstock.web.ui.gantt import Bar, bars_of, marks
from penstock.web.ui.page import LISTED, SQL, Facts, NoSuchThing, Page, PageLook

STEPS_MAX = 1_000
ERROR_SHOWN = 160
WORKFLOWS = 50
FILTERED = 250  # runs that are read where only active ones are wanted
ACTIVE = (QUEUED, RUNNING, WAITING)

RUNS = View(
    "runs",
    (
        Column("id", "run"),
        Column("workflow", "workflow"),
        Column("state", "state", "state"),
        Column("step", "step"),
        Column("created_at", "started", "time"),
        Column("ended_at", "ended", "time"),
        Column("due_at", "continues", "due"),
        Column("error", "error", "prose"),
    ),
    empty="There is no such run.",
)


FACTS = tuple(column for column in view.RUN if column.name not in ("input", "result"))


async def runs(look: PageLook) -> Facts:
    workflow, state = look.text("workflow"), look.text("state")
    before = look.number("before", look.now + 1)
    names = (await view.names(look.reading))[:WORKFLOWS]
    most = FILTERED if state not in (None, "paused", "errored") else LISTED + 1
    found = await look.reading.rows(*_listing(workflow, state), before=before, most=most, **_of(workflow, state))
    rows = [await _row(look, each) for each in found[: LISTED + 1] if state is None or each.state == state]
    if state is not None and state not in ("paused", "errored"):
        rows = [
            row
            for row in [await _row(look, each) for each in found if _may_be(each.state, state)]
            if row["state"] == state
        ]
    if workflow is not None and state in ("paused", "errored"):
        rows = [row for row in rows if row["workflow"] == workflow]
    following = None
    if len(found) >= most:
        following = found[-1].created_at
    return {
        "runs": rows[:LISTED],
        "workflows": names,
        "states": list(STATES),
        "workflow": workflow,
        "state": state,
        "next": following,
        "read": len(found),
    }


def _listing(workflow: str | None, state: str | None) -> tuple[str]:
    if state in ("paused", "errored"):
        return (SQL[f"runs_{state}"],)
    return (SQL["runs_newest" if workflow is None else "runs_of_workflow"],)


def _of(workflow: str | None, state: str | None) -> dict[str, Any]:
    return {"workflow": workflow} if workflow is not None and state not in ("paused", "errored") else {}


def _may_be(stored: str, wanted: str) -> bool:
    return stored == ("active" if wanted in ACTIVE else wanted)


async def _row(look: PageLook, run: Any) -> Row:
    """Return a run with what its message says of it: an active run is queued, running or waiting."""
    state, step, due = run.state, None, None
    if run.state in ("active", PAUSED):
        (now,) = await look.reading.rows(SQL["run_now"], key=bytes(run.key), workflow=run.workflow)
        step = now.step
        if run.state == "active":
            state = RUNNING if now.worker is not None else WAITING if (now.due or 0) > look.now else QUEUED
            due = view.soon(now.due, run.created_at) if state == WAITING else None
    return {
        "id": run.id,
        "workflow": run.workflow,
        "state": state,
        "step": step,
        "reason": run.reason,
        "error": None if run.error is None else short(redacted(run.error), ERROR_SHOWN),
        "correlation_id": as_text(bytes(run.correlation_id)),
        "created_at": iso_z(run.created_at),
        "ended_at": None if run.ended_at is None else iso_z(run.ended_at),
        "due_at": None if due is None else iso_z(due),
    }


# -- one run ------------------------------------------------------------------------------------------------


async def run(look: PageLook) -> Facts:
    workflow, id = look.parts["workflow"], look.parts["id"]
    row = await _the_run(look, workflow, id)
    until = look.number("until", STEPS_MAX)
    steps = row["steps"][:until] if until < len(row["steps"]) else row["steps"]
    waits = [step["name"] for step in row["steps"] if step["kind"] == SIGNAL and step["state"] == PENDING]
    app = look.reading.app
    bars = _bars(row, steps, look.now)
    return {
        "run": row,
        "steps": steps,
        "bars": [bar.row() for bar in bars],
        "marks": marks(_seconds(bars)),
        "until": until if until < len(row["steps"]) else None,
        "waits_for_signals": waits,
        "is_over": row["state"] in ENDED,
        "has_code": app is not None and workflow in app.workflows.names(),
    }


async def _the_run(look: PageLook, workflow: str, id: str) -> Row:
    found = await view.find(look.reading, id, now=look.now, workflow=workflow)
    if not found:
        raise NoSuchThing(f"There is no run {id!r} of {workflow}. It may have been deleted after its retention.")
    return await view.one(look.reading, found[0].id, workflow)


def _bars(row: Row, steps: Sequence[Row], now: int) -> list[Bar]:
    began = micros_of(row["created_at"])
    made = []
    for step in steps:
        begins, is_open = micros_of(step["started_at"]), step["state"] in (PENDING, RETRYING)
        ends = micros_of(step["ended_at"]) if step["ended_at"] else now
        if is_open and step["kind"] == SLEEP and step["due_at"]:
            ends = max(now, min(micros_of(step["due_at"]), now + (now - began)))
        made.append(
            Bar(
                name=step["name"],
                state=step["state"],
                begins=begins,
                ends=max(begins, ends),
                kind=step["kind"],
                attempts=step["attempts"],
                is_open=is_open,
            )
        )
    last = micros_of(row["ended_at"]) if row["ended_at"] else max([now, *(bar.ends for bar in made)])
    return bars_of(made, since=began, until=max(last, began + 1))


def _seconds(bars: Sequence[Bar]) -> float:
    """Return how long the axis is on which these bars were placed."""
    widest = max(bars, key=lambda bar: bar.ends - bar.begins, default=None)
    if widest is None or not widest.width or widest.ends == widest.begins:
        return 0.0
    return (widest.ends - widest.begins) / 1_000_000 / widest.width * 1_000


# -- two runs -----------------------------------------------------------------------------------------------


async def compare(look: PageLook) -> Facts:
    workflow, left, right = look.text("workflow"), look.text("a"), look.text("b")
    if workflow is None or left is None or right is None:
        raise NoSuchThing("Name a workflow and two of its runs: ?workflow=research&a=cluster-7&b=cluster-8")
    runs = [await _the_run(look, workflow, id) for id in (left, right)]
    rows = aligned(runs[0]["steps"], runs[1]["steps"])
    first = next((row["name"] for row in rows if row["differs"]), None)
    charts = []
    longest = max(_length(each, look.now) for each in runs)
    for each in runs:
        began = micros_of(each["created_at"])
        bars = bars_of(_bars(each, each["steps"], look.now), since=began, until=began + longest)
        charts.append([bar.row() for bar in bars])
    return {
        "workflow": workflow,
        "runs": runs,
        "rows": rows,
        "bars": charts,
        "marks": marks(longest / 1_000_000),
        "first_difference": first,
        "same_input": bytes(runs[0]["input"]) == bytes(runs[1]["input"]),
    }


def _length(row: Row, now: int) -> int:
    ended = micros_of(row["ended_at"]) if row["ended_at"] else now
    return max(1, ended - micros_of(row["created_at"]))


def aligned(left: Sequence[Row], right: Sequence[Row]) -> list[Row]:
    """Return the steps of two runs in pairs: by name, and by place among steps of one name."""
    places: dict[tuple[str, int], list[Row | None]] = {}
    for side, steps in enumerate((left, right)):
        seen: dict[str, int] = {}
        for step in steps:
            seen[step["name"]] = seen.get(step["name"], 0) + 1
            pair = places.setdefault((step["name"], seen[step["name"]]), [None, None])
            pair[side] = step
    rows = []
    for (name, number), (one, two) in places.items():
        differs = one is None or two is None or _outcome(one) != _outcome(two)
        took = [_took(each) for each in (one, two)]
        rows.append(
            {
                "name": name if number == 1 else f"{name} ({number})",
                "left": one,
                "right": two,
                "took_ms": took,
                "slower_ms": None if None in took else (took[1] or 0.0) - (took[0] or 0.0),
                "differs": differs,
            }
        )
    return rows


def _outcome(step: Row) -> tuple[Any, ...]:
    result = step["result"]
    return step["state"], step["attempts"], None if result is None else bytes(result), step["error"]


def _took(step: Row | None) -> float | None:
    if step is None or not step["ended_at"]:
        return None
    return (micros_of(step["ended_at"]) - micros_of(step["started_at"])) / 1_000


PAGES = (
    Page("/runs", "Workflows", runs, "runs.html", listing=RUNS, every=5.0, views={"columns": RUNS.columns}),
    Page("/compare", "Two runs", compare, "compare.html"),
    Page(
        "/runs/{workflow}/{id:path}",
        "Run",
        run,
        "run.html",
        every=2.0,
        views={"steps": view.STEPS, "columns": FACTS},
    ),
)
