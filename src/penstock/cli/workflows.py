"""`penstock workflows`: which runs there are, how each step of one went, and the levers an operator has."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from penstock.cli import target as targets
from penstock.cli.one_run import draw, error_told, look, told, told_briefly
from penstock.cli.operating import show_help
from penstock.cli.output import NotFound, Output, code_name, fill, table
from penstock.cli.starting import start
from penstock.cli.steering import pause, restart, resume, signal, terminate, workflow_option
from penstock.data import runs
from penstock.model.errors import NoSuchRun
from penstock.model.row import Row
from penstock.model.run import PAUSED, STATES

if TYPE_CHECKING:
    from rich.console import Console

ERROR_DRAWN = 80  # characters, in one line


@click.group(invoke_without_command=True)
@click.pass_context
def workflows(ctx: click.Context) -> None:
    """Workflows: list, show, start, signal, pause, resume, terminate, restart.

    A run is named by its id: the one it was started under, or r and 32 digits, which `start` gives. Behind it may stand
    the app (market.py) or its database (market.db); without either it is the one that PENSTOCK_DATABASE or penstock.toml
    names, or the only one in this folder. Only `start` needs the app.

    \b
    Example:
      penstock workflows list
      penstock workflows list research --state waiting
      penstock workflows show cluster-7
      penstock workflows start research market.py --input '{"cluster_id": 7}'
      penstock workflows signal cluster-7 approved
    """
    show_help(ctx)


@workflows.command("list")
@click.argument("workflow", required=False, metavar="[WORKFLOW]")
@targets.target_argument
@targets.database_option
@click.option("--state", type=click.Choice(STATES), help="Only those that are.")
@click.option(
    "--limit", default=100, show_default=True, type=click.IntRange(1, runs.LISTED_MAX), help="How many at most."
)
@click.pass_obj
def list_runs(
    output: Output, workflow: str | None, target: str | None, database: str | None, state: str | None, limit: int
) -> None:
    """Runs, of one workflow or of all, the newest first.

    Changes nothing. `queued` waits for a worker, `running` is with one, `waiting` sleeps or waits for a signal, a child or
    the next try of a step, `paused` waits for a person; `errored`, `terminated` and `complete` have ended.

    \b
    Example:
      penstock workflows list
      penstock workflows list research --state paused
      penstock workflows list market.db --limit 1000 --json
    """
    if target is None and workflow is not None and targets.names_one(workflow):
        workflow, target = None, workflow
    rows = asyncio.run(_listed(targets.find(target, database), workflow, state, limit))
    found = [_told(row) for row in rows]
    output.show({"runs": found}, lambda console: _draw_all(console, found))


async def _listed(found: targets.Target, workflow: str | None, state: str | None, limit: int) -> list[Row]:
    with targets.reading(found) as reading:
        try:
            return await runs.listed(reading, workflow, state, now=reading.now(), limit=limit)
        except NoSuchRun as error:
            raise NotFound(str(error), code=code_name(error)) from error


def _told(row: Row) -> dict[str, Any]:
    return {
        "id": row.id,
        "workflow": row.workflow,
        "state": row.state,
        "step": row.step,
        "reason": row.reason,
        "error": error_told(row.error),
        **told_briefly(row),
    }


def _draw_all(console: Console, found: list[dict[str, Any]]) -> None:
    if not found:
        console.print("There is no such run. `penstock workflows start` begins one.")
        return
    drawn = table(("run", "left"), ("workflow", "left"), ("state", "left"), ("step", "left"), ("", "left"))
    rows = [(each["id"], each["workflow"], each["state"], each["step"] or "-", _more(each)) for each in found]
    console.print(fill(drawn, rows))
    if any(each["state"] == PAUSED and each["reason"] != runs.ASKED for each in found):
        console.print("\nThe code of some differs from what they have recorded: `penstock workflows show ID` says how.")


def _more(each: dict[str, Any]) -> str:
    if each["error"] is not None:
        line = " ".join(each["error"].split())
        return line if len(line) <= ERROR_DRAWN else line[: ERROR_DRAWN - 3] + "..."
    if each["ended_at"] is not None:
        return f"ended {each['ended_at']}"
    return f"until {each['due_at']}" if each["due_at"] else f"since {each['created_at']}"


@workflows.command()
@click.argument("id", metavar="ID")
@targets.target_argument
@targets.database_option
@workflow_option
@click.pass_obj
def show(output: Output, id: str, target: str | None, database: str | None, workflow: str | None) -> None:
    """One run: what it was started with, how each step went, what it waits for.

    Changes nothing. If the code differs from what the run has recorded, the difference is shown in full. What `--json` prints
    is a history that `penstock.testing.replay` checks changed code against.

    \b
    Example:
      penstock workflows show cluster-7
      penstock workflows show r019a8c3e7f007abc8def0123456789ab market.py
      penstock workflows show cluster-7 --json > tests/histories/cluster-7.json
    """
    found = asyncio.run(look(targets.find(target, database), id, workflow))
    output.show(told(found), lambda console: draw(console, found))


for verb in (start, signal, pause, resume, terminate, restart):
    workflows.add_command(verb)
