"""`penstock workflows start`: begins a run by hand, with what its workflow says it takes."""

from __future__ import annotations

import asyncio
import inspect
from copy import copy
from typing import Any

import click

from penstock.cli import target as targets
from penstock.cli.operating import app_at, operating
from penstock.cli.output import NotFound, Output, plain
from penstock.cli.sending import PRIORITIES
from penstock.model.errors import BadMessage, BadParameter, NoSuchRun
from penstock.model.strict_json import BadJson, parse
from penstock.workflows.workflow import Handle, Workflow


@click.command()
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("app", metavar="APP")
@targets.database_option
@click.option("--id", "id", metavar="ID", help="The id of the run; a second start under it begins nothing.")
@click.option("--input", "given", metavar="JSON", default="{}", help="What it is given: one object, by parameter name.")
@click.option("--priority", type=click.Choice(list(PRIORITIES)), help="Instead of the workflow's own.")
@click.pass_obj
def start(
    output: Output, workflow: str, app: str, database: str | None, id: str | None, given: str, priority: str | None
) -> None:
    """Begin a run of a workflow.

    A worker runs it: where none is at work it waits for one. The app is named, because what a workflow takes is declared
    there. Without an id the run gets one of its own.

    \b
    Example:
      penstock workflows start research market.py --input '{"cluster_id": 7}'
      penstock workflows start research market.py --id cluster-7 --input '{"cluster_id": 7}' --priority high
    """
    wanted = _input(given)
    found = app_at(app, database)
    told = asyncio.run(_start(found, workflow, id, wanted, None if priority is None else PRIORITIES[priority]))
    output.show(told, lambda console: console.print(plain(_started(told))))


def _input(given: str) -> dict[str, Any]:
    value = parsed(given, "--input", "--input '{\"cluster_id\": 7}'")
    if not isinstance(value, dict):
        raise BadParameter(
            f"--input is {_kind(value)}, and a workflow is given one object, by parameter name. Nothing was started.",
            hint="In single quotes for the shell: --input '{\"cluster_id\": 7}'.",
        )
    return value


async def _start(
    found: targets.Target, name: str, id: str | None, given: dict[str, Any], priority: int | None
) -> dict[str, Any]:
    async with operating(found) as app:
        try:
            workflow = copy(app.workflows[name])
        except NoSuchRun as error:
            raise NotFound(str(error), code="no_such_workflow") from error
        if priority is not None:
            workflow.priority = priority
        try:
            workflow.inputs.encoded((), given)
        except BadMessage as error:
            raise BadParameter(str(error), code="bad_input", hint=_takes(workflow)) from error
        before = None if id is None else await state_now(workflow[id])
        starting: Any = workflow if id is None else workflow[id]
        async with app.unit():
            handle: Handle[..., Any] = starting.start(**given)
        state = before or await state_now(handle)
        return {"id": handle.id, "workflow": name, "started": before is None, "state": state}


async def state_now(handle: Handle[..., Any]) -> str | None:
    try:
        return (await handle.status()).state
    except NoSuchRun:
        return None


def _takes(workflow: Workflow[..., Any]) -> str:
    _, *rest = inspect.signature(workflow.function).parameters.values()
    taken = ", ".join(map(str, rest)) or "nothing"
    return f"{workflow.name} takes {taken}. Give it as one JSON object, by name."


def _started(told: dict[str, Any]) -> str:
    if told["started"]:
        shown = f"`penstock workflows show {told['id']}` shows how far it is."
        return f"{told['id']} begins as soon as a worker takes it. {shown}"
    return f"{told['id']} had been started before and is {told['state']}; nothing was begun."


def parsed(text: str, what: str, example: str) -> object:
    try:
        return parse(text.encode(errors="surrogateescape"))
    except BadJson as error:
        raise BadParameter(
            f"{what} is no JSON. {error} Nothing was changed.",
            code="bad_json",
            hint=f"JSON stands in single quotes for the shell: {example}.",
        ) from error


def _kind(value: object) -> str:
    return {list: "a list", str: "a text", bool: "true or false", int: "a number", float: "a number"}.get(
        type(value), "null"
    )
