"""The pages of workflows: runs in a list, one run as a Gantt chart of its steps, and two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.model.ids import as_text
from penstock.model.redaction import redacted
from penstock.model.run import ENDED, PAUSED, PENDING, QUEUED, RETRYING, RUNNING, SIGNAL, SLEEP, STATES, WAITING
from penstock.model.stack import place_of
from penstock.model.times import iso_z
from penstock.views import runs as view
from penstock.views.view import Column, Row, View, micros_of, short
from penstock.web.ui.gantt import Bar, bars_of, marks, seconds_of
from penstock.web.ui.page import LISTED, SQL, Facts, NoSuchThing, Page, PageLook, continued

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
    most = LISTED + 1 if state in (None, "paused", "errored") else FILTERED
    few = state in ("paused", "errored")  # runs of these states have an index of their own
    name = f"runs_{state}" if few else "runs_newest" if workflow is None else "runs_of_workflow"
    bound = {} if few or workflow is None else {"workflow": workflow}
    found = await look.reading.rows(SQL[name], before=before, most=most, skip=look.number("skip", 0), **bound)
    stored = "active" if state in ACTIVE else state
    kept = [each for each in enumerate(found[: most - 1]) if state is None or each[1].state == stored]
    made = [(index, await _row(look, each)) for index, each in kept]
    rows = [each for each in made if state in (None, each[1]["state"]) and workflow in (None, each[1]["workflow"])]
    index = rows[LISTED][0] if len(rows) > LISTED else most - 1 if len(found) == most else None
    return {
        "runs": [row for _, row in rows[:LISTED]],
        "workflows": names,
        "states": list(STATES),
        "workflow": workflow,
        "state": state,
        "next": None if index is None else continued(look, [each.created_at for each in found], index),
        "read": len(found),
    }


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
        "place": place_of(row.get("traceback")),
        "steps": steps,
        "bars": [bar.row() for bar in bars],
        "marks": marks(seconds_of(bars)),
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
        differs = ["missing in one"] if one is None or two is None else _differences(one, two)
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


def _differences(one: Row, two: Row) -> list[str]:
    results = [None if each["result"] is None else bytes(each["result"]) for each in (one, two)]
    differs = [name for name in ("state", "attempts", "error") if one[name] != two[name]]
    return differs + (["result"] if results[0] != results[1] else [])


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
