"""Runs of workflows, read from their rows without the app's code.

A run is found by its key, which follows from its workflow and its id. The names of workflows are those of their queues.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from penstock.data.usage import Reading
from penstock.model.errors import NoSuchRun
from penstock.model.ids import from_text
from penstock.model.limits import near
from penstock.model.redaction import redacted
from penstock.model.row import Row
from penstock.model.run import (
    CHILD,
    NEVER_SECONDS,
    PAUSED,
    PENDING,
    QUEUED,
    RETRYING,
    RUNNING,
    SIGNAL,
    SLEEP,
    STATES,
    WAITING,
    is_made,
    key_of,
)
from penstock.model.sql_files import load
from penstock.model.times import iso_z
from penstock.views.observer import Observer
from penstock.views.view import Column, View, micros_of, shaped, short
from penstock.views.view import Row as Shown

TYPE = "workflow.run"  # of the message of a run
WORKFLOWS_MAX = 10_000  # as many as an app may have queues
LISTED_MAX = 10_000
NAMES_MAX = 200  # ids that a misspelt one is compared with
STEPS_PAGE = 1_000
PRIORITY_NAMES = ("high", "normal", "low")
BRIEF = "correlation_id message_id priority created_at ended_at due_at"  # of one run, and of each of many
STEP = "name state attempts started_at ended_at kind position due_at result error traceback"
ASKED = "asked"  # the reason of a run that an operator paused
ERROR_TEXT_MAX = 500
SQL = load("penstock.views", "runs.sql")


async def names(reading: Reading) -> list[str]:
    """Return the workflows that an app with this database has ever had."""
    found = await reading.rows(SQL["names"], most=WORKFLOWS_MAX)
    return [row.name.removeprefix("workflow.") for row in found]


async def find(reading: Reading, id: str, *, now: int, workflow: str | None = None) -> list[Row]:
    """Return the runs of this id, or of a message's id: one, unless several workflows have a run of this id."""
    known = [name for name in await names(reading) if workflow is None or name == workflow]
    rows = [row for key in _keys(id, known) for row in await reading.rows(SQL["found"], key=key, now=now)]
    return [row for row in rows if workflow is None or row.workflow == workflow]


async def the_run(reading: Reading, id: str, *, now: int, workflow: str | None = None) -> Row:
    """Return the one run of this id. Raise NoSuchRun where there is none, or several."""
    found = await find(reading, id, now=now, workflow=workflow)
    if len(found) == 1:
        return found[0]
    if found:
        several = " and ".join(row.workflow for row in found)
        raise NoSuchRun(f"There are runs {id!r} of {several}. Name one with --workflow.", id=id)
    of = ", ".join(await names(reading)) if workflow is None else workflow
    known = [row.id for row in await listed(reading, None, None, now=now, limit=NAMES_MAX)] if workflow is None else []
    raise NoSuchRun(f"There is no run {id!r} of {of or 'any workflow'}. {near(id, known)}", id=id)


def _keys(id: str, workflows: list[str]) -> list[bytes]:
    if not workflows:
        return []  # nor need there be any table to look into
    keys = [key_of(workflows[0], id)] if is_made(id) else [key_of(name, id) for name in workflows]
    try:
        keys.append(from_text(id))
    except ValueError:
        pass
    return list(dict.fromkeys(keys))


async def listed(
    reading: Reading, workflow: str | None, state: str | None, *, now: int, limit: int = LISTED_MAX
) -> list[Row]:
    """Return runs, newest first. Raise NoSuchRun where there is no such workflow."""
    known = await names(reading)
    if workflow is not None and workflow not in known:
        raise NoSuchRun(f"There is no workflow {workflow!r}. {near(workflow, known)}", code="no_such_workflow")
    if not known:
        return []
    assert state is None or state in STATES
    stored = "active" if state in (QUEUED, RUNNING, WAITING) else state
    return await reading.rows(SQL["listed"], workflow=workflow, stored=stored, state=state, now=now, most=limit)


async def parked(reading: Reading, workflow: str | None) -> list[Row]:
    """Return runs whose recorded steps the code does not fit, the oldest first. They wait for an operator."""
    if not await names(reading):
        return []
    return await reading.rows(SQL["parked"], workflow=workflow, most=LISTED_MAX)


async def steps(reading: Reading, key: bytes, *, most: int | None = None) -> list[Row]:
    """Return the steps of a run, or the first `most`, in the order in which they began."""
    found: list[Row] = []
    while most is None or len(found) < most:
        page = STEPS_PAGE if most is None else min(STEPS_PAGE, most - len(found))
        more = await reading.rows(SQL["steps"], run=key, after=found[-1].position if found else -1, most=page)
        found += more
        if len(more) < page:
            break
    return found


async def unheard(reading: Reading, key: bytes) -> list[Row]:
    """Return signals that the run has not waited for yet."""
    return await reading.rows(SQL["signals"], run=key, most=STEPS_PAGE)


# -- what a run waits for ---------------------------------------------------------------------------------


class Wait(NamedTuple):
    """`when` is when it ends by itself, None if it does not."""

    state: str
    reason: str
    when: int | None


async def wait_of(reading: Reading, key: bytes, *, now: int) -> Wait | None:
    """Return why the run of a message does not go on. None if it is not a run, or a worker will take it in its turn."""
    for run in await reading.rows(SQL["found"], key=key, now=now):
        return waits_for(run, await steps(reading, key))
    return None


def waits_for(run: Row, recorded: list[Row]) -> Wait | None:
    who = f"Run {run.id} of {run.workflow}"
    if run.state == PAUSED:
        again = f"with: penstock workflows resume {run.id}"
        if run.reason == ASKED:
            return Wait(PAUSED, f"{who} is paused. Resume it {again}", None)
        first = (run.error or run.reason).partition("\n")[0].rstrip(":.")
        shown = f"See it in full with: penstock workflows show {run.id}."
        return Wait(PAUSED, f"{who} is parked. {first}. {shown} Correct the code, then resume it {again}", None)
    if run.state != WAITING:
        return None
    return Wait(WAITING, f"{who} waits: {open_steps(recorded)}.", soon(run.due, run.created_at))


def open_steps(recorded: list[Row]) -> str:
    """Return what a waiting run waits for."""
    waits = [_wait_text(step) for step in recorded if step.state in (PENDING, RETRYING)]
    return "; ".join(waits) or "its next step begins soon"


def _wait_text(step: Row) -> str:
    until = "" if step.due is None else f" until {iso_z(step.due)}"
    if step.state == RETRYING:
        return f"step {step.name} failed and is retried at {iso_z(step.due)}, after {error_line(step.error)}"
    if step.kind == SLEEP:
        return f"{step.name} sleeps{until}"
    if step.kind == SIGNAL:
        timeout = "without a timeout" if step.due is None else f"which times out at {iso_z(step.due)}"
        return f"{step.name} waits for a signal, {timeout}"
    return f"{step.name} waits for its child" if step.kind == CHILD else f"step {step.name} begins soon"


def soon(due: int | None, created_at: int) -> int | None:
    """Return a due time that means something: a run that only a signal or an operator wakes is due in a thousand years."""
    return None if due is None or due - created_at > NEVER_SECONDS * 500_000 else due


def error_line(error: str | None) -> str:
    return " ".join(redacted(error or "").split())[:ERROR_TEXT_MAX]


# -- rows and columns ---------------------------------------------------------------------------------------


async def rows(
    observer: Observer, workflow: str | None = None, state: str | None = None, *, limit: int = 100
) -> list[Shown]:
    found = await listed(observer, workflow, state, now=observer.now(), limit=limit)
    return [shaped(f"id workflow state step reason error {BRIEF}", _facts(row)) for row in found]


async def one(observer: Observer, id: str, workflow: str | None = None) -> Shown:
    """Return a run with its steps: a history from which a replay check can be made."""
    row = await the_run(observer, id, now=observer.now(), workflow=workflow)
    recorded = await steps(observer, bytes(row.key))
    more = {
        "steps": [shaped(STEP, {**step.asdict(), "due_at": step.due} | _unknown(step)) for step in recorded],
        "waits_for": open_steps(recorded) if row.state == WAITING else None,
        "signals": [shaped("name sent_at", each.asdict()) for each in await unheard(observer, bytes(row.key))],
    }
    fields = f"id workflow state steps input result error traceback reason waits_for {BRIEF} parent restarts signals"
    return shaped(fields, _facts(row) | more)


def _facts(row: Row) -> Shown:
    facts = row.asdict()
    due = soon(row.due, row.created_at) if row.state == WAITING else None
    facts |= {"message_id": facts["key"], "priority": PRIORITY_NAMES[row.priority], "due_at": due}
    return facts | {"parent": facts.get("parent_id"), "restarts": facts.get("generation")}


def _unknown(step: Row) -> Shown:
    return {"result": None} if step.state == PENDING else {}


def _value(name: str, most: int) -> Any:
    def text(row: Shown) -> str | None:
        value = row[name]
        body = None if value is None else bytes(value).decode(errors="replace")
        return None if body in (None, "null") else short(redacted(body), most)

    return text


def _took(row: Shown) -> float | None:
    return row["ended_at"] and (micros_of(row["ended_at"]) - micros_of(row["started_at"])) / 1_000


VALUE_SHOWN, INPUT_SHOWN, ERROR_SHOWN = 60, 1_000, 160  # characters
RUN_STATE = Column("state", "state", "state")
ERROR = Column("error", "error", "prose", rank=2, of=lambda row: row["error"] and short(row["error"], ERROR_SHOWN))
RUNS = View(
    "runs",
    (
        Column("id", "run"),
        Column("workflow", "workflow", rank=1),
        RUN_STATE,
        Column("step", "step"),
        Column("created_at", "started", "time", rank=3),
        Column("ended_at", "ended", "time", rank=4),
        Column("due_at", "continues", "due", rank=2),
        ERROR,
    ),
    rows,
    "There is no such run. Start one with: penstock workflows start WORKFLOW APP",
)
RUN = (
    Column("input", "input", of=_value("input", INPUT_SHOWN)),
    Column("result", "result", of=_value("result", INPUT_SHOWN)),
    Column("waits_for", "waits for"),
    Column("due_at", "continues", "exact_time"),
    Column("created_at", "started", "exact_time"),
    Column("ended_at", "ended", "exact_time"),
    Column("parent", "child of"),
    Column("restarts", "restarts", "count", of=lambda row: row["restarts"] or None),
    Column("signals", "unread signals", of=lambda row: ", ".join(each["name"] for each in row["signals"])),
    Column("correlation_id", "chain"),
)
STEPS = View(
    "steps",
    (
        Column("name", "step"),
        RUN_STATE,
        Column("kind", "kind", rank=3),
        Column("attempts", "attempts", "count", rank=4, of=lambda row: row["attempts"] or None),
        Column("started_at", "started", "time", rank=5),
        Column("", "took", "took", rank=1, of=_took),
        Column("due_at", "waits until", "due", rank=1),
        Column("result", "result", "prose", rank=2, of=_value("result", VALUE_SHOWN)),
        ERROR,
    ),
    empty="No step has begun yet.",
)
