"""`penstock cron`: the tasks that run by the clock, and what an operator does: trigger, pause, resume."""

from __future__ import annotations

import click

from penstock.app import App
from penstock.cli.command import Noun, looking, operating_one
from penstock.cli.output import Answer, listed
from penstock.views import crons as view
from penstock.views.observer import Observer


@click.group(cls=Noun)
def cron() -> None:
    """List cron tasks, and trigger, pause or resume one.

    A task has the name of its function, unless `name=` gives it another.

    Example:
      penstock cron list
      penstock cron trigger crawl
      penstock cron pause crawl market.py
    """


@cron.command("list")
@looking
async def list_crons(observer: Observer) -> Answer:
    """List cron tasks: when each runs next, and how its runs ended.

    A run that is `idle` found nothing to do. With the app named, the reason of each schedule is shown.

    Example:
      penstock cron list
      penstock cron list market.py --json
    """
    return listed(view.CRONS, await view.CRONS.read(observer))


@cron.command()
@operating_one
async def trigger(app: App, name: str) -> Answer:
    """Run a task once, now, beside its schedule.

    A worker runs it. If none is running, the run waits for one.

    Example:
      penstock cron trigger crawl
    """
    await app.crons.trigger(name)
    done = f"Triggered cron task {name}. See how it ends with: penstock cron list"
    return Answer({"cron": name, "triggered": True}, done)


@cron.command()
@operating_one
async def pause(app: App, name: str) -> Answer:
    """Stop running a task until it is resumed.

    A run that has begun is finished. The pause survives restarts.

    Example:
      penstock cron pause crawl
    """
    await app.crons.pause(name)
    return Answer({"cron": name, "paused": True}, f"Paused cron task {name}. Resume with: penstock cron resume {name}")


@cron.command()
@operating_one
async def resume(app: App, name: str) -> Answer:
    """Run a paused task again, from its next time on.

    Runs that it missed are not made up for.

    Example:
      penstock cron resume crawl
    """
    await app.crons.resume(name)
    done = f"Resumed cron task {name}. See when it runs next with: penstock cron list"
    return Answer({"cron": name, "paused": False}, done)
