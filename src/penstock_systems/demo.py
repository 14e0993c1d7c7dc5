"""`penstock demo`: the App Store pipeline against a fake store, for several virtual days, without a clone."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import click

import penstock as ps
from penstock.commands import Command, refuse, this_output

NEEDED = ("scipy", "graspologic_native")
INSTALL = "pip install 'penstock[demo]'"


@click.command(cls=Command)
@click.option("--apps", type=click.IntRange(100, 100_000), default=3_000, show_default=True, help="Apps in the store.")
@click.option("--days", type=click.FloatRange(0.1, 60), default=6.0, show_default=True, help="Virtual days.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Another seed is another store.")
@click.option("--without", metavar="MARKET", help="Leave out this planted market, such as chess.")
@click.option("--out", default="penstock-demo", show_default=True, metavar="FOLDER", help="Where its data is kept.")
def demo(apps: int, days: float, seed: int, without: str | None, out: str) -> int:
    """Run a whole pipeline: six virtual days against a fake App Store.

    It finds apps through charts and searches, reads their pages at a rate that it has to find, groups them into markets, and
    ranks those that are worth building for. The result is a list and a report.html. After a kill, the next start continues
    it. It needs the extra `demo` and takes two minutes.

    Example:
      penstock demo
      penstock demo --apps 300 --days 1
    """
    if this_output().json:
        raise refuse("The demo draws on a terminal. Its facts are in report.json of its folder.")
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ps.BadConfig(f"The demo needs {' and '.join(missing)}. Install the extra `demo`: {INSTALL}", hint=INSTALL)
    environment = {"APPS": str(apps), "DAYS": str(days), "SEED": str(seed), "WITHOUT": without or "", "OUT": out}
    command = [sys.executable, "-m", "penstock_systems.appstore.demo"]
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode
