"""`penstock queues`: what is in each queue, and the levers an operator has: pause, resume, purge, tune, send."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from penstock.cli import target as targets
from penstock.cli.one_queue import draw, look, rate_shown, told, told_state
from penstock.cli.operating import confirm, operating, progress, refuse, show_help, yes_option
from penstock.cli.output import Output, plain
from penstock.cli.sending import send
from penstock.cli.status import all_option, draw_queues
from penstock.data import overview
from penstock.data.overview import QueueState

LOOK_SECONDS = 0.2  # between two looks at how far a purge is

name_argument = click.argument("name", metavar="NAME")


@click.group(invoke_without_command=True)
@click.pass_context
def queues(ctx: click.Context) -> None:
    """Queues: list, show, pause, resume, purge, send, tune.

    A queue is named as the app names it. Behind the name may stand the app (market.py) or its database (market.db);
    without either it is the one that PENSTOCK_DATABASE or penstock.toml names, or the only one in this folder.

    \b
    Example:
      penstock queues list
      penstock queues show found
      penstock queues pause found market.py
      penstock queues send found '{"url": "https://shop.example/"}' market.py
    """
    show_help(ctx)


queues.add_command(send)


# -- looking ----------------------------------------------------------------------------------------------


@queues.command("list")
@targets.target_argument
@targets.database_option
@all_option
@click.pass_obj
def list_queues(output: Output, target: str | None, database: str | None, everything: bool) -> None:
    """All queues with what waits, runs, is delayed or dead.

    Changes nothing. `oldest` is how long the first message that may run has been due.

    \b
    Example:
      penstock queues list
      penstock queues list market.db --json
    """
    states = asyncio.run(_states(targets.find(target, database)))
    output.show(
        {"queues": [told_state(state) for state in states]},
        lambda console: draw_queues(console, states, everything=everything),
    )


async def _states(found: targets.Target) -> list[QueueState]:
    with targets.reading(found) as reading:
        return await overview.queues(reading, now=reading.now())


@queues.command()
@name_argument
@targets.target_argument
@targets.database_option
@click.pass_obj
def show(output: Output, name: str, target: str | None, database: str | None) -> None:
    """One queue: its depth, its settings, and who serves it.

    Changes nothing. What an operator has tuned is told beside what the app declares.

    \b
    Example:
      penstock queues show found
      penstock queues show found market.py --json
    """
    found = asyncio.run(look(targets.find(target, database), name))
    output.show(told(found), lambda console: draw(console, found))


# -- changing ---------------------------------------------------------------------------------------------


@queues.command()
@name_argument
@targets.target_argument
@targets.database_option
@click.pass_obj
def pause(output: Output, name: str, target: str | None, database: str | None) -> None:
    """Deliver nothing of a queue until it is resumed.

    Messages can still be sent. What a worker has taken already is finished. It stays paused over restarts.

    \b
    Example:
      penstock queues pause found
    """
    asyncio.run(_pause(targets.find(target, database), name, paused=True))
    _say(output, {"queue": name, "paused": True}, f"{name} is paused. `penstock queues resume {name}` lets it go on.")


@queues.command()
@name_argument
@targets.target_argument
@targets.database_option
@click.pass_obj
def resume(output: Output, name: str, target: str | None, database: str | None) -> None:
    """Deliver a paused queue again, at once.

    \b
    Example:
      penstock queues resume found
    """
    asyncio.run(_pause(targets.find(target, database), name, paused=False))
    _say(output, {"queue": name, "paused": False}, f"{name} is delivered again.")


async def _pause(found: targets.Target, name: str, *, paused: bool) -> None:
    async with operating(found) as app:
        desk = await app.desk()
        await (desk.pause(name) if paused else desk.resume(name))


@queues.command()
@name_argument
@targets.target_argument
@targets.database_option
@yes_option
@click.pass_obj
def purge(output: Output, name: str, target: str | None, database: str | None, yes: bool) -> None:
    """Remove everything that waits in a queue, for good.

    What is under way is left to end, and dead letters stay (see `penstock dead`). It is asked for first; `--yes` skips
    that. Pause the queue before if its senders go on.

    \b
    Example:
      penstock queues purge found
      penstock queues purge found --yes --json
    """
    found = targets.find(target, database)
    state = asyncio.run(look(found, name)).state
    waiting = state.ready + state.delayed
    confirm(output, f"purge {waiting:,} {_messages(waiting)} of {name}", yes=yes)
    purged = asyncio.run(_purge(output, found, name, waiting))
    _say(output, {"queue": name, "purged": purged}, f"{purged:,} {_messages(purged)} of {name} purged.")


async def _purge(output: Output, found: targets.Target, name: str, waiting: int) -> int:
    async with operating(found) as app:
        desk = await app.desk()
        before = (await desk.backlog(name)).count
        purging = asyncio.ensure_future(desk.purge(name))
        with progress(output, f"purging {name}", waiting) as done:
            while not (await asyncio.wait({purging}, timeout=LOOK_SECONDS))[0]:
                done(before - (await desk.backlog(name)).count)
        return await purging


def _messages(count: int) -> str:
    return "message" if count == 1 else "messages"


@queues.command()
@name_argument
@targets.target_argument
@targets.database_option
@click.option("--parallel", metavar="N|auto", help="Handlers at once in each process; auto: as the app says.")
@click.option("--rate", metavar="R|none|auto", help="Starts a second; none: no limit; auto: as the app says.")
@click.pass_obj
def tune(
    output: Output, name: str, target: str | None, database: str | None, parallel: str | None, rate: str | None
) -> None:
    """Set how many run at once and how many start a second.

    It holds at once in all processes, and over restarts, until it is tuned again. What is not named stays as it is.
    `auto` gives it back to the app.

    \b
    Example:
      penstock queues tune found --parallel 4
      penstock queues tune found --rate 2.5
      penstock queues tune found --parallel auto --rate auto
    """
    if parallel is None and rate is None:
        raise refuse("Say what to tune: --parallel, --rate or both.")
    found = targets.find(target, database)
    row = asyncio.run(look(found, name)).row
    wanted = (
        row.parallel_tuned if parallel is None else _parallel(parallel),
        row.rate_tuned if rate is None else _per_second(rate),
    )
    asyncio.run(_tune(found, name, *wanted))
    parts = [
        "parallel " + ("as the app says" if wanted[0] is None else f"{wanted[0]:,}"),
        "rate " + ("as the app says" if wanted[1] is None else rate_shown(wanted[1])),
    ]
    _say(output, {"queue": name, "parallel": wanted[0], "rate": wanted[1]}, f"{name}: {', '.join(parts)}.")


async def _tune(found: targets.Target, name: str, parallel: int | None, rate: float | None) -> None:
    async with operating(found) as app:
        await (await app.desk()).tune(name, parallel=parallel, rate=rate)


def _parallel(text: str) -> int | None:
    if text == "auto":
        return None
    if not text.isdecimal():
        raise refuse(f"{text!r} is no number of handlers. Write --parallel 4, or --parallel auto.")
    return int(text)


def _per_second(text: str) -> float | None:
    if text in ("auto", "none"):
        return None if text == "auto" else 0.0
    try:
        return float(text)
    except ValueError:
        raise refuse(f"{text!r} is no rate. Write --rate 2.5, --rate none or --rate auto.") from None


def _say(output: Output, told: dict[str, Any], sentence: str) -> None:
    output.show(told, lambda console: console.print(plain(sentence)))
