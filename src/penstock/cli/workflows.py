"""`penstock workflows`: runs and their steps, and what an operator does: start, signal, pause, resume, terminate, restart.

Only `start` needs the app's code: a run is rows, and a placeholder of its workflow knows how to change them.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from copy import copy
from typing import Any

import click

from penstock.app import App
from penstock.cli.command import (
    Noun,
    beside,
    limit_option,
    looking,
    looking_at,
    opened_app,
    opening,
    operating,
    operating_app,
    operating_on,
    refuse,
)
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Facts, Listed, Title, Verbatim, listed
from penstock.cli.queues import PRIORITIES
from penstock.model.errors import BadMessage, BadParameter, NoSuchRun, PenstockError
from penstock.model.row import Row
from penstock.model.run import COMPLETE, ENDED, PAUSED, QUEUED, RUNNING, STATES, TERMINATED, WAITING
from penstock.model.strict_json import BadJson, parse
from penstock.views import runs as view
from penstock.views.observer import Observer
from penstock.views.view import counted
from penstock.workflows.run import Run
from penstock.workflows.workflow import Handle, Workflow

NAMED = 10  # runs that a sentence names
AT_WORK = (QUEUED, RUNNING, WAITING)
KINDS = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}

AnyHandle = Handle[..., Any]

id_argument = click.argument("id", metavar="ID")
workflow_option = click.option(
    "--workflow", metavar="NAME", help="Whose run, where several workflows have one of this id."
)


class RunEnded(PenstockError):
    """The run has ended."""


@click.group(cls=Noun)
def workflows() -> None:
    """List runs of workflows, and start, signal, pause, resume, terminate or restart one.

    A run has the id under which it was started, or r and 32 digits, which `start` prints. Name the app
    (market.py) or its database (market.db) after it. Only `start` needs the app.

    Example:
      penstock workflows list
      penstock workflows list research --state waiting
      penstock workflows show cluster-7
      penstock workflows start research market.py --input '{"cluster_id": 7}'
      penstock workflows signal cluster-7 approved
    """


@workflows.command("list")
@click.argument("workflow", required=False, metavar="[WORKFLOW]")
@looking_at("workflow")
@click.option("--state", type=click.Choice(STATES), help="Only runs in this state.")
@limit_option(view.LISTED_MAX)
async def list_runs(observer: Observer, workflow: str | None, state: str | None, limit: int) -> Answer:
    """List runs of one workflow or of all, newest first.

    A run is `queued` until a worker takes it, `running` while one executes it, `waiting` while it sleeps or waits for a
    signal, a child or a retry, and `paused` until it is resumed. `errored`, `terminated` and `complete` runs have ended.

    Example:
      penstock workflows list
      penstock workflows list research --state paused
      penstock workflows list market.db --limit 1000 --json
    """
    rows = await view.RUNS.read(observer, workflow, state, limit=limit)
    parked = any(row["state"] == PAUSED and row["reason"] != view.ASKED for row in rows)
    note = (
        ["", "The code of some differs from what they have recorded. See how: penstock workflows show ID"]
        if parked
        else []
    )
    return listed(view.RUNS, rows, *note)


@workflows.command()
@id_argument
@looking
@workflow_option
async def show(observer: Observer, id: str, workflow: str | None) -> Answer:
    """Show one run: its input, its steps, and what it waits for.

    If the code differs from what the run has recorded, the difference is shown. What `--json` prints is a history against
    which `penstock.testing.replay` checks changed code.

    Example:
      penstock workflows show cluster-7
      penstock workflows show r019a8c3e7f007abc8def0123456789ab market.py
      penstock workflows show cluster-7 --json > tests/histories/cluster-7.json
    """
    row = await view.one(observer, id, workflow)
    parts: list[object] = [Title(f"{row['workflow']} {row['id']}", row["state"]), "", Facts(view.RUN, row)]
    if row["error"] is not None:
        parts += ["", Verbatim(row["error"])]
    parts += ["", Listed(view.STEPS, row["steps"])]
    for name, text in [*((step["name"], step["traceback"]) for step in row["steps"]), ("", row["traceback"])]:
        if text and row["state"] != COMPLETE:
            parts += ["", Title(f"traceback of step {name}" if name else "traceback"), Verbatim(text.rstrip())]
    if row["state"] == PAUSED:
        parts += ["", f"Resume with: penstock workflows resume {row['id']}"]
    elif row["state"] in ENDED and row["state"] != COMPLETE:
        parts += [
            "",
            f"Run it again with: penstock workflows restart {row['id']}",
            "Add --from STEP to keep what came before.",
        ]
    return Answer(row, *parts)


# -- start --------------------------------------------------------------------------------------------------


@workflows.command()
@click.argument("workflow", metavar="WORKFLOW")
@operating_app
@click.option("--id", "id", metavar="ID", help="The id of the run; a second start under it starts nothing.")
@click.option("--input", "given", metavar="JSON", default="{}", help="Its input: one object, by parameter name.")
@click.option("--priority", type=click.Choice(list(PRIORITIES)), help="Instead of the workflow's own.")
async def start(app: App, workflow: str, id: str | None, given: str, priority: str | None) -> Answer:
    """Start a run of a workflow.

    A worker executes it. If none is running, the run waits for one. Without an id it gets one of its own.

    Example:
      penstock workflows start research market.py --input '{"cluster_id": 7}'
      penstock workflows start research market.py --id cluster-7 --priority high
    """
    declared = copy(app.workflows[workflow])
    wanted = _input(given)
    if priority is not None:
        declared.priority = PRIORITIES[priority]
    try:
        declared.inputs.encoded((), wanted)
    except BadMessage as error:
        raise BadParameter(str(error), code="bad_input", hint=_takes(declared)) from error
    before = None if id is None else await _state(declared[id])
    starting: Any = declared if id is None else declared[id]
    async with app.unit():
        handle: AnyHandle = starting.start(**wanted)
    state = before or await _state(handle)
    facts = {"id": handle.id, "workflow": workflow, "started": before is None, "state": state}
    if before is not None:
        return Answer(facts, f"Run {handle.id} was started before and is {state}; nothing was started.")
    return Answer(facts, f"Started run {handle.id} of {workflow}. Follow it with: penstock workflows show {handle.id}")


def _input(given: str) -> dict[str, Any]:
    value = _parsed(given, "--input", "--input '{\"cluster_id\": 7}'")
    if not isinstance(value, dict):
        raise BadParameter(
            f"--input is {KINDS.get(type(value), 'null')}; give one object, by parameter name. Nothing was started.",
            hint="In single quotes for the shell: --input '{\"cluster_id\": 7}'.",
        )
    return value


def _takes(workflow: Workflow[..., Any]) -> str:
    _, *rest = inspect.signature(workflow.function).parameters.values()
    taken = ", ".join(map(str, rest)) or "nothing"
    return f"{workflow.name} takes {taken}. Give it as one JSON object, by name."


def _parsed(text: str, what: str, example: str) -> object:
    try:
        return parse(text.encode(errors="surrogateescape"))
    except BadJson as error:
        hint = f"JSON stands in single quotes for the shell: {example}."
        raise BadParameter(f"{what} is not JSON. {error} Nothing was changed.", code="bad_json", hint=hint) from error


async def _state(handle: AnyHandle) -> str | None:
    try:
        return (await handle.status()).state
    except NoSuchRun:
        return None


# -- signal -------------------------------------------------------------------------------------------------


@workflows.command()
@id_argument
@click.argument("name", metavar="NAME")
@click.argument("payload", metavar="[PAYLOAD]", required=False)
@opening(opened_app, optional="payload")
@workflow_option
async def signal(app: App, id: str, name: str, payload: str | None, workflow: str | None) -> Answer:
    """Send a signal to a run.

    PAYLOAD is JSON, null if it is left out. A payload that does not fit the type that the run waits for is refused, and so is
    a signal to a run that has ended: exit code 1. A signal that the run does not wait for yet is kept, with a warning.

    Example:
      penstock workflows signal cluster-7 approved
      penstock workflows signal cluster-7 approved '{"by": "Ada"}' market.py
    """
    value = None if payload is None else _parsed(payload, "The payload", '\'{"by": "Ada"}\'')
    (handle,) = await _handles(app, [id], workflow)
    state = (await handle.status()).state
    if state in ENDED:
        hint = f"`penstock workflows restart {handle.id}` runs it again."
        raise RunEnded(f"Run {handle.id!r} is {state} and takes no more signals.", hint=hint)
    waits = await handle.waits_for()
    async with app.unit():
        handle.signal(name, value)
    sent = f"Sent signal {name} to run {handle.id}."
    if name not in waits:
        sent += f" The run does not wait for it now. It waits for: {', '.join(waits) or 'no signal'}."
    return Answer({"id": handle.id, "signal": name, "waits_for": waits}, sent)


# -- pause, resume, terminate, restart ----------------------------------------------------------------------


@workflows.command()
@operating_on("ID...")
@workflow_option
async def pause(app: App, names: list[str], workflow: str | None) -> Answer:
    """Pause runs until they are resumed.

    The current step finishes, and no other starts. Time passes for sleeps. The pause survives restarts.

    Example:
      penstock workflows pause cluster-7
      penstock workflows pause cluster-7 cluster-8 market.py
    """
    handles = await _handles(app, names, workflow)
    return await _each("paused", handles, Handle.pause, (PAUSED,), "Resume with: penstock workflows resume")


@workflows.command()
@operating_on("[ID]...", least=0)
@workflow_option
@click.option("--parked", is_flag=True, help="All that the engine paused because the code did not fit them.")
async def resume(app: App, names: list[str], workflow: str | None, parked: bool) -> Answer:
    """Resume paused runs.

    With --parked, resume the runs of one workflow or of all that were paused because the code differed from what they had
    recorded, or did not take their input: correct the code, deploy it, then resume them. One that still does not fit is
    paused again.

    Example:
      penstock workflows resume cluster-7
      penstock workflows resume --parked research market.py
    """
    if parked and (len(names) > 1 or (names and workflow is not None)):
        raise refuse("With --parked, name at most one workflow. Runs are resumed by their ids without --parked.")
    if not parked and not names:
        raise refuse("Name runs by their ids in `penstock workflows list --state paused`, or add --parked.")
    if parked:
        with beside(app) as observer:
            rows = await view.parked(observer, names[0] if names else workflow)
        handles = [_handle(app, row) for row in rows]
    else:
        handles = await _handles(app, names, workflow)
    return await _each("resumed", handles, Handle.resume, AT_WORK, "Follow with: penstock workflows show")


@workflows.command()
@operating_on("ID...")
@workflow_option
async def terminate(app: App, names: list[str], workflow: str | None) -> Answer:
    """Terminate runs and their children at once.

    A step that is running saves nothing more; results of earlier steps are kept. `restart` runs it again.

    Example:
      penstock workflows terminate cluster-7
      penstock workflows terminate cluster-7 cluster-8 market.py
    """
    handles = await _handles(app, names, workflow)
    again = "Run again with: penstock workflows restart"
    return await _each("terminated", handles, Handle.terminate, (TERMINATED,), again)


@workflows.command()
@id_argument
@operating
@workflow_option
@click.option("--from", "step", metavar="STEP", help="From this step on; results of earlier steps are kept.")
async def restart(app: App, id: str, workflow: str | None, step: str | None) -> Answer:
    """Restart a run, from its beginning or from a step.

    It may have ended or not. Steps that run again use new idempotency keys, so no outside service takes them for a repeat.
    Children of those steps are terminated.

    Example:
      penstock workflows restart cluster-7
      penstock workflows restart cluster-7 market.py --from write
    """
    (handle,) = await _handles(app, [id], workflow)
    await handle.restart(step=step)
    place = "its start" if step is None else f"step {step}"
    done = f"Restarted run {handle.id} from {place}. Follow it with: penstock workflows show {handle.id}"
    return Answer({"id": handle.id, "restarted": True, "from": step}, done)


async def _each(
    what: str,
    handles: Sequence[AnyHandle],
    operate: Callable[[AnyHandle], Awaitable[None]],
    wanted: tuple[str, ...],
    next_step: str,
) -> Answer:
    """A run that is in the wanted state already counts as done; one that cannot get there does not hold up the others."""
    ids: list[str] = []
    refused: list[dict[str, str]] = []
    for handle in handles:
        try:
            await operate(handle)
            ids.append(handle.id)
        except BadMessage as error:
            if await _state(handle) in wanted:
                ids.append(handle.id)
            else:
                refused.append({"id": handle.id, "message": str(error)})
    named = ", ".join(ids[:NAMED]) + (f" and {len(ids) - NAMED:,} more" if len(ids) > NAMED else "")
    runs = "run" if len(ids) == 1 else f"{counted(len(ids), 'run')}:"
    parts = [f"{what.capitalize()} {runs} {named}. {next_step} {ids[0]}"] if ids else []
    parts += [each["message"] for each in refused]
    code = BAD_ANSWER if refused else FINE
    return Answer(
        {what: ids, "refused": refused}, *(parts or ["There is no such run; nothing was changed."]), code=code
    )


async def _handles(app: App, ids: Sequence[str], workflow: str | None) -> list[AnyHandle]:
    """Return each run once. All are found before anything is changed."""
    with beside(app) as observer:
        rows = [await view.the_run(observer, id, now=observer.now(), workflow=workflow) for id in ids]
    return [_handle(app, row) for row in {bytes(row.key): row for row in rows}.values()]


def _handle(app: App, row: Row) -> AnyHandle:
    if row.workflow not in app.workflows.names():
        # After the app was opened, so that what its own app declares of it stays as it is.
        app.workflows.add(_placeholder, name=row.workflow)
    return app.workflows[row.workflow][row.id]


async def _placeholder(run: Run) -> None:
    raise AssertionError("nothing runs here")
