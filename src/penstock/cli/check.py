"""`penstock check`: what can be said against an app before it runs. Each check passes, or names the line and the way out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from penstock.app import App
from penstock.cli.output import BAD_ANSWER, FINE, Output, plain
from penstock.cli.reference import load
from penstock.readiness.finding import Finding
from penstock.readiness.fixed_batches import fixed_batches
from penstock.readiness.singletons import singletons

if TYPE_CHECKING:
    from rich.console import Console


def _tasks(app: App) -> Iterator[Finding]:
    return fixed_batches((task.name, task.function) for task in app.crons.tasks.values())


def _names(app: App) -> Iterator[Finding]:
    return singletons(_modules(app))


CHECKS: dict[str, tuple[str, Callable[[App], Iterator[Finding]]]] = {
    "fixed-batch": ("No cron task calls a service for each of a batch", _tasks),
    "singleton-name": ("Singletons are addressed by their one name", _names),
}


@click.command()
@click.argument("app", metavar="APP")
@click.pass_obj
def check(output: Output, app: str) -> int:
    """Check an app before it runs.

    Reads its code and touches no database. Exit code 1 if anything failed.

    \b
    Example:
      penstock check market.py
      penstock check package.market:app --json
    """
    checks = list(_checked(load(app)))
    passed = all(each["status"] == "pass" for each in checks)
    output.show({"passed": passed, "checks": checks}, lambda console: _draw(console, checks))
    return FINE if passed else BAD_ANSWER


def _checked(app: App) -> Iterator[dict[str, Any]]:
    for id, (name, look) in CHECKS.items():
        found = list(look(app))
        for each in found:
            yield {"id": id, "name": name, "status": "fail", **each._asdict()}
        if not found:
            nothing = {"file": None, "line": None, "message": "", "fix": ""}
            yield {"id": id, "name": name, "status": "pass", **nothing}


def _modules(app: App) -> list[ModuleType]:
    """Where the app was written, and whatever else is beside that: its tasks, handlers and objects."""
    own = [module for module in list(sys.modules.values()) if any(each is app for each in vars(module).values())]
    packages = {module.__name__.rpartition(".")[0] for module in own} - {""}
    return [
        module
        for name, module in sorted(sys.modules.items())
        if module in own or any(name.startswith(f"{package}.") for package in packages)
    ]


def _draw(console: Console, checks: list[dict[str, Any]]) -> None:
    for each in checks:
        mark = "[green]pass[/]" if each["status"] == "pass" else "[red]fail[/]"
        console.print(f"{mark}  {plain(each['name'])}")
        if each["status"] != "pass":
            console.print(f"      {plain(each['file'])}:{each['line']}: {plain(each['message'])}")
            console.print(f"      → {plain(each['fix'])}")
