"""`penstock audit`: what operators changed, who they were, and what was there before."""

from __future__ import annotations

import click

from penstock.cli.command import Command, limit_option, looking
from penstock.cli.output import Answer, listed
from penstock.views import audit as view
from penstock.views.observer import Observer


@click.command(cls=Command)
@looking
@click.option("--object", "name", metavar="NAME", help="Of this queue, cron task, run, controller or dead letter.")
@click.option("--verb", metavar="VERB", help='Of this command, such as "queues pause", or this noun, such as dead.')
@limit_option(view.LISTED_MAX, 50)
async def audit(observer: Observer, name: str | None, verb: str | None, limit: int) -> Answer:
    """List what operators changed, newest first.

    Each administrative command and HTTP call writes one entry in the commit of its effect: who (user and host, or the name of
    the token), from where, what, and the values before and after. A command that changes nothing writes none.

    Example:
      penstock audit market.py
      penstock audit market.py --object orders
      penstock audit market.db --verb "dead replay" --json
    """
    return listed(view.AUDIT, await view.rows(observer, name, verb, limit=limit))
