"""`penstock new`: writes a small project that runs and whose tests pass."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path

import click

from penstock.cli.command import CliCommand, refuse
from penstock.cli.output import Answer, Verbatim

FILES = {  # where each template goes
    "app.py.tmpl": "__NAME__.py",
    "source.py.tmpl": "source.py",
    "migration.sql.tmpl": "migrations/0001_offers.sql",
    "test.py.tmpl": "tests/test___NAME__.py",
    "penstock.toml.tmpl": "penstock.toml",
    "pytest.ini.tmpl": "pytest.ini",
    "README.md.tmpl": "README.md",
    "gitignore.tmpl": ".gitignore",
}
NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
TAKEN = {"penstock", "penstock_systems", "pytest", "source", "test", "tests", *sys.stdlib_module_names}


@click.command(cls=CliCommand)
@click.argument("name", metavar="NAME")
def new(name: str) -> Answer:
    """Write a small project into a new folder: app, migration, tests, settings.

    It collects a paged source into a table, without a network. The name becomes a Python module: lower-case letters, digits
    and underscores.

    Example:
      penstock new market
    """
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or name in TAKEN:
        why = "Python or the project itself uses that name" if NAME.fullmatch(name) else "it is not a module name"
        raise refuse(f"{name!r} cannot be used: {why}. Use lower-case letters, digits and underscores, such as market.")
    folder = Path(name)
    if folder.exists():
        raise refuse(f"{folder} exists already, and nothing was written. Use another name, or move it away.")
    written = []
    for template, place in FILES.items():
        path = folder / place.replace("__NAME__", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (files("penstock") / "templates" / template).read_text("utf-8")
        path.write_text(text.replace("__NAME__", name), "utf-8")
        written.append(str(path))
    steps = [f"cd {name}", "pip install pytest && pytest", f"penstock run {name}.py --reload"]
    done = f"Wrote {len(written)} files into {name}/. Next:"
    return Answer({"folder": name, "files": written}, Verbatim("\n  ".join([done, *steps])))
