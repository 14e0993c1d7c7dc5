"""`penstock new`: writes a small project that runs and whose tests pass."""

from __future__ import annotations

import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path

import click

from penstock.cli.operating import refuse
from penstock.cli.output import Output, plain

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


@click.command()
@click.argument("name", metavar="NAME")
@click.pass_obj
def new(output: Output, name: str) -> None:
    """Write a small project into a new folder: app, migration, tests, settings.

    It collects a paged source into a table, without a network. The name becomes a Python module: lower-case letters, digits
    and underscores.

    \b
    Example:
      penstock new market
    """
    if not NAME.fullmatch(name) or keyword.iskeyword(name) or name in TAKEN:
        why = "Python or the project itself uses that name" if NAME.fullmatch(name) else "it is no module name"
        raise refuse(
            f"{name!r} cannot be used: {why}. Take lower-case letters, digits and underscores, such as market."
        )
    folder = Path(name)
    if folder.exists():
        raise refuse(f"{folder} exists already, and nothing was written. Take another name, or move it away.")
    written = []
    for template, place in FILES.items():
        path = folder / place.replace("__NAME__", name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = (files("penstock") / "templates" / template).read_text("utf-8")
        path.write_text(text.replace("__NAME__", name), "utf-8")
        written.append(str(path))
    lines = [f"Wrote {name}/: {len(written)} files. Next:", f"  cd {name}", "  pip install pytest && pytest"]
    lines.append(f"  penstock run {name}.py --reload")
    output.show({"folder": name, "files": written}, lambda console: console.print(plain("\n".join(lines))))
