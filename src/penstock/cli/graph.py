"""`penstock graph`: the parts of an app and what uses what, as a drawing for Mermaid or as JSON."""

from __future__ import annotations

from pathlib import Path

import click

from penstock.cli.command import CliCommand, all_option
from penstock.cli.output import Answer, Verbatim
from penstock.cli.reference import load
from penstock.views import graph as view
from penstock.views import graph_svg


@click.command(cls=CliCommand)
@click.argument("app", metavar="APP")
@click.option(
    "--svg", type=click.Path(dir_okay=False, writable=True, path_type=Path), help="Write a drawing to this file."
)
@all_option
def graph(app: str, svg: Path | None, internals: bool) -> Answer:
    """Print the graph of an app: its services, and what sends to, starts or calls what.

    It is read from the code, without a database. The output is a flowchart that Mermaid draws, in a Markdown file or at
    mermaid.live; --json has the settings of each part too.

    Example:
      penstock graph market.py
      penstock graph market.py --svg market.svg
      penstock graph appstore --json
    """
    row = view.graph(load(app), internals=internals)
    if svg is None:
        return Answer(row, Verbatim(view.mermaid(row)))
    svg.write_text(graph_svg.svg(row), encoding="utf-8")
    return Answer(row, f"Wrote {svg}. Open it in a browser.")
