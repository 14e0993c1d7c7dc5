"""`penstock graph`: the parts of an app and what uses what, as a drawing for Mermaid or as JSON."""

from __future__ import annotations

import click

from penstock.cli.command import CliCommand, all_option
from penstock.cli.output import Answer, Verbatim
from penstock.cli.reference import load
from penstock.views import graph as view


@click.command(cls=CliCommand)
@click.argument("app", metavar="APP")
@all_option
def graph(app: str, internals: bool) -> Answer:
    """Print the graph of an app: what sends to, starts or calls what.

    It is read from the code, without a database. The output is a flowchart that Mermaid draws, in a Markdown file or at
    mermaid.live; --json has the settings of each part too.

    Example:
      penstock graph market.py
      penstock graph appstore --json
    """
    row = view.graph(load(app), internals=internals)
    return Answer(row, Verbatim(view.mermaid(row)))
