"""`penstock trial`: the same ten items through every stage of an app, on a database that is thrown away."""

from __future__ import annotations

import asyncio
import os
from contextlib import chdir, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from penstock.app import App
from penstock.cli import reference
from penstock.cli.output import BAD_ANSWER, FINE, NotFound, Output, plain
from penstock.gateway import standins as standing_in
from penstock.readiness.trial import ITEMS, Passed


@click.command()
@click.argument("app", metavar="APP")
@click.option("--standins", is_flag=True, help="Against the app's stand-ins, in virtual time: seconds, and no network.")
@click.option("--items", type=click.IntRange(1, 1_000), default=ITEMS, show_default=True, help="Items to follow.")
@click.option("--seed", type=int, default=1, show_default=True, help="With --standins: repeat a trial exactly.")
@click.pass_obj
def trial(output: Output, app: str, standins: bool, items: int, seed: int) -> int:
    """Follow a few items through every stage of an app.

    Each stage is asked what became of these very items: what it made of others, or long ago, proves nothing. It runs on a
    database of its own, which is thrown away. A trial that passed is noted in the app's database; apps that require one
    are not started before. Exit code 1 if a stage let nothing through, and its name.

    \b
    Example:
      penstock trial appstore --standins
      penstock trial market.py --items 3
    """
    found = reference.load(app)
    if not found.trial:
        raise NotFound(f"{app} declares no trial. `@app.trial.stage(...)` above a question declares a stage of one.")
    followed: list[Passed] = []

    def tell(passed: Passed) -> None:
        followed.append(passed)
        if not output.json:
            mark = "[green]pass[/]" if passed.passed else "[red]fail[/]"
            output.console().print(
                f"{mark}  {plain(passed.stage):<14} {passed.items} of {passed.of} items came through"
            )

    with TemporaryDirectory(prefix="penstock-trial-") as folder:
        if standins:
            _in_virtual_time(found, items, seed, tell, Path(folder))
        else:
            _in_real_time(found, items, tell, Path(folder))
    passed = len(followed) == len(found.trial.stages) and all(each.passed for each in followed)
    if passed:
        asyncio.run(_note(found))
    stages = [each._asdict() for each in followed]
    output.show({"passed": passed, "stages": stages}, lambda console: _draw(console, followed, passed))
    return FINE if passed else BAD_ANSWER


def _in_virtual_time(app: App, items: int, seed: int, tell: Any, folder: Path) -> None:
    from penstock import testing

    async def main() -> None:
        running = testing.TestApp(app, seed=seed, folder=folder)
        standing_in.mount(app.standins, lambda: running.now.timestamp())
        async with running:
            await app.trial.follow(lambda seconds: running.advance(seconds=seconds), tell, items=items)

    with chdir(folder):
        testing.run(main, seed=seed)


def _in_real_time(app: App, items: int, tell: Any, folder: Path) -> None:
    if urls := os.environ.get(standing_in.VARIABLE):
        standing_in.forward(app.standins, urls.split(","))

    async def main() -> None:
        running = asyncio.ensure_future(app.run())
        following = asyncio.ensure_future(app.trial.follow(asyncio.sleep, tell, items=items))
        both: set[asyncio.Future[Any]] = {running, following}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                await running  # it fell over, and says why
            await following
        finally:
            following.cancel()
            app.stop()
            with suppress(asyncio.CancelledError):
                await running

    before, app.database = app.database, str(folder / "trial.db")
    try:
        with chdir(folder):
            asyncio.run(main())
    finally:
        app.database = before


async def _note(app: App) -> None:
    async with app:
        await app.trial.note_passed()


def _draw(console: Any, followed: list[Passed], passed: bool) -> None:
    if passed:
        console.print("\nEvery stage let them through.")
    elif followed:
        last = followed[-1]
        console.print(
            f"\nStage [bold]{plain(last.stage)}[/] let {last.items} of {last.of} items through; it takes {last.least}. "
            "Look at what triggers it, and at what it reads. The log above tells what failed."
        )
