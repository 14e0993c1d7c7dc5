"""What is done to runs of workflows by hand: signal, pause, resume, terminate, restart.

None of it needs the app's code: a run is rows, and a stand-in of its workflow knows how to change them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import click

from penstock.app import App
from penstock.cli import target as targets
from penstock.cli.operating import operating, refuse
from penstock.cli.output import BAD_ANSWER, FINE, NotFound, Output, code_name, plain
from penstock.cli.starting import parsed, state_now
from penstock.data import runs
from penstock.model.errors import BadMessage, NoSuchRun, PenstockError
from penstock.model.row import Row
from penstock.model.run import ENDED, PAUSED, QUEUED, RUNNING, TERMINATED, WAITING
from penstock.workflows.run import Run
from penstock.workflows.workflow import Handle

NAMED = 10  # runs that a sentence names
AT_WORK = (QUEUED, RUNNING, WAITING)

AnyHandle = Handle[..., Any]

workflow_option = click.option(
    "--workflow", metavar="NAME", help="Which, where several workflows have a run of this id."
)
ids_argument = click.argument("words", metavar="ID... [APP | DATABASE]", nargs=-1, required=True)


class RunEnded(PenstockError):
    """The run has ended."""


# -- signal -----------------------------------------------------------------------------------------------


@click.command()
@click.argument("id", metavar="ID")
@click.argument("name", metavar="NAME")
@click.argument("payload", metavar="[PAYLOAD]", required=False)
@targets.target_argument
@targets.database_option
@workflow_option
@click.pass_obj
def signal(
    output: Output,
    id: str,
    name: str,
    payload: str | None,
    target: str | None,
    database: str | None,
    workflow: str | None,
) -> None:
    """Send a signal to a run.

    PAYLOAD is JSON, null if it is left out. A payload that does not fit the type that the run waits for is refused, and so is
    a signal to a run that has ended: exit code 1. A signal that the run does not wait for yet is kept for it, with a warning.

    \b
    Example:
      penstock workflows signal cluster-7 approved
      penstock workflows signal cluster-7 approved '{"by": "Ada"}' market.py
    """
    if target is None and payload is not None and targets.names_one(payload):
        payload, target = None, payload
    told = None if payload is None else parsed(payload, "The payload", '\'{"by": "Ada"}\'')
    found = targets.find(target, database)
    id, waits = asyncio.run(_signal(found, id, name, told, workflow))
    said = f"Sent signal {name} to run {id}."
    if name not in waits:
        said += f" The run does not wait for it now. It waits for: {', '.join(waits) or 'no signal'}."
    shown = {"id": id, "signal": name, "waits_for": waits}
    output.show(shown, lambda console: console.print(plain(said), soft_wrap=True))


async def _signal(
    found: targets.Target, id: str, name: str, payload: object, workflow: str | None
) -> tuple[str, list[str]]:
    async with _run(found, id, workflow) as (app, handle):
        state = (await handle.status()).state
        if state in ENDED:
            raise RunEnded(
                f"Run {handle.id!r} is {state} and hears nothing any more.",
                hint=f"`penstock workflows restart {handle.id}` does it anew.",
            )
        waits = await handle.waits_for()
        async with app.unit():
            handle.signal(name, payload)
        return handle.id, waits


# -- pause, resume, terminate -----------------------------------------------------------------------------


@click.command()
@ids_argument
@targets.database_option
@workflow_option
@click.pass_obj
def pause(output: Output, words: tuple[str, ...], database: str | None, workflow: str | None) -> int:
    """Let runs rest until they are resumed.

    A step that has begun is finished; none begins after it. A sleep goes on being slept. They stay paused over restarts.

    \b
    Example:
      penstock workflows pause cluster-7
      penstock workflows pause cluster-7 cluster-8 market.py
    """
    done = _operate(words, database, workflow, lambda handle: handle.pause(), (PAUSED,))
    return _say(output, "paused", done, "rests", "rest", " `penstock workflows resume` ends that.")


@click.command()
@click.argument("words", metavar="[ID]... [APP | DATABASE]", nargs=-1)
@targets.database_option
@workflow_option
@click.option("--parked", is_flag=True, help="All that the engine put aside because the code did not fit them.")
@click.pass_obj
def resume(output: Output, words: tuple[str, ...], database: str | None, workflow: str | None, parked: bool) -> int:
    """Let paused runs go on.

    With --parked, those of one workflow or of all that were put aside because the code differed from what they had recorded,
    or did not take what they were started with: mend the code, deploy it, then resume them. One that it still does not fit is
    put aside again.

    \b
    Example:
      penstock workflows resume cluster-7
      penstock workflows resume --parked research market.py
    """
    if parked:
        done = _resume_parked(words, database, workflow)
    elif not words:
        raise refuse("Say which: ids from `penstock workflows list --state paused`, or --parked.")
    else:
        done = _operate(words, database, workflow, lambda handle: handle.resume(), AT_WORK)
    return _say(output, "resumed", done, "goes on", "go on")


def _resume_parked(words: Sequence[str], database: str | None, workflow: str | None) -> Done:
    names, target = targets.behind(words, least=0)
    if len(names) > 1 or (names and workflow is not None):
        raise refuse("With --parked stands at most the name of one workflow. Runs are resumed by their ids without it.")
    found = targets.find(target, database)

    async def operate() -> Done:
        with targets.reading(found) as reading:
            rows = await runs.parked(reading, names[0] if names else workflow)
        return await _each(found, rows, lambda handle: handle.resume(), AT_WORK)

    return asyncio.run(operate())


@click.command()
@ids_argument
@targets.database_option
@workflow_option
@click.pass_obj
def terminate(output: Output, words: tuple[str, ...], database: str | None, workflow: str | None) -> int:
    """End runs here and now, and their children with them.

    A step that is being done saves nothing any more; what was done before stays done. `restart` takes it up again.

    \b
    Example:
      penstock workflows terminate cluster-7
      penstock workflows terminate cluster-7 cluster-8 market.py
    """
    done = _operate(words, database, workflow, lambda handle: handle.terminate(), (TERMINATED,))
    return _say(output, "terminated", done, "is terminated", "are terminated")


# -- restart ----------------------------------------------------------------------------------------------


@click.command()
@click.argument("id", metavar="ID")
@targets.target_argument
@targets.database_option
@workflow_option
@click.option("--from", "step", metavar="STEP", help="From this step on; what was done before it stays done.")
@click.pass_obj
def restart(
    output: Output, id: str, target: str | None, database: str | None, workflow: str | None, step: str | None
) -> None:
    """Do a run anew, from its beginning or from a step on.

    It may have ended or not. Steps that are done again are done with keys of their own, so that no outside service takes them
    for a repeat of the first time. Children of what is done again are terminated.

    \b
    Example:
      penstock workflows restart cluster-7
      penstock workflows restart cluster-7 market.py --from write
    """
    id = asyncio.run(_restart(targets.find(target, database), id, workflow, step))
    sentence = f"{id} is done anew from {'its beginning' if step is None else f'step {step}'}."
    output.show({"id": id, "restarted": True, "from": step}, lambda console: console.print(plain(sentence)))


async def _restart(found: targets.Target, id: str, workflow: str | None, step: str | None) -> str:
    async with _run(found, id, workflow) as (_, handle):
        try:
            await handle.restart(step=step)
            return handle.id
        except NoSuchRun as error:
            raise NotFound(str(error), code="no_such_step") from error


# -- what they share --------------------------------------------------------------------------------------


class Done:
    """What became of each run that something was asked for."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.refused: list[dict[str, str]] = []


def _operate(
    words: Sequence[str],
    database: str | None,
    workflow: str | None,
    deed: Callable[[AnyHandle], Awaitable[None]],
    wanted: tuple[str, ...],
) -> Done:
    ids, target = targets.behind(words)
    found = targets.find(target, database)

    async def operate() -> Done:
        return await _each(found, await _rows(found, ids, workflow), deed, wanted)

    return asyncio.run(operate())


async def _each(
    found: targets.Target,
    rows: Sequence[Row],
    deed: Callable[[AnyHandle], Awaitable[None]],
    wanted: tuple[str, ...],
) -> Done:
    """A run that is what it should become counts as done; one that cannot become it holds up no other."""
    done = Done()
    async with operating(found) as app:
        for handle in [_handle(app, row) for row in rows]:
            try:
                await deed(handle)
                done.ids.append(handle.id)
            except BadMessage as error:
                if await state_now(handle) in wanted:
                    done.ids.append(handle.id)
                else:
                    done.refused.append({"id": handle.id, "message": str(error)})
    return done


@asynccontextmanager
async def _run(found: targets.Target, id: str, workflow: str | None) -> AsyncIterator[tuple[App, AnyHandle]]:
    (row,) = await _rows(found, [id], workflow)
    async with operating(found) as app:
        yield app, _handle(app, row)


async def _rows(found: targets.Target, ids: Sequence[str], workflow: str | None) -> list[Row]:
    """Each once, all there before anything is changed."""
    with targets.reading(found) as reading:
        find = partial(runs.the_run, reading, now=reading.now(), workflow=workflow)
        try:
            rows = [await find(id) for id in ids]
        except NoSuchRun as error:
            raise NotFound(str(error), code=code_name(error)) from error
    return list({bytes(row.key): row for row in rows}.values())


def _handle(app: App, row: Row) -> AnyHandle:
    if row.workflow not in app.workflows.names():
        # After the app was opened, so that what its own app declares of it stays as it is.
        app.workflows.add(name=row.workflow)(_stand_in)
    return app.workflows[row.workflow][row.id]


async def _stand_in(run: Run) -> None:
    raise AssertionError("nothing runs here")


def _say(output: Output, what: str, done: Done, one: str, many: str, more: str = "") -> int:
    named = ", ".join(done.ids[:NAMED]) + (f" and {len(done.ids) - NAMED:,} more" if len(done.ids) > NAMED else "")
    lines = [f"{named} {one if len(done.ids) == 1 else many}.{more}"] if done.ids else []
    lines += [each["message"] for each in done.refused]
    output.show(
        {what: done.ids, "refused": done.refused},
        lambda console: console.print(plain("\n".join(lines) or "There is no such run; nothing was changed.")),
    )
    return BAD_ANSWER if done.refused else FINE
