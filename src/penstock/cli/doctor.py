"""`penstock doctor`: looks at the machine, the settings and a database, and says what to do about what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from penstock.cli import checkup
from penstock.cli import target as targets
from penstock.cli.checkup import Check
from penstock.cli.output import BAD_ANSWER, FINE, Output, plain
from penstock.model.errors import PenstockError, StoreUnavailable

if TYPE_CHECKING:
    from rich.console import Console

MARKS = {"ok": "[green]ok[/]  ", "warn": "[yellow]warn[/]", "fail": "[red]fail[/]"}


@click.command()
@targets.target_argument
@targets.database_option
@click.option("--deep", is_flag=True, help="Read everything: indexes too, and whether each message is accounted for.")
@click.pass_obj
def doctor(output: Output, target: str | None, database: str | None, deep: bool) -> int:
    """Find out what is wrong.

    Looks at versions, settings, the disk, the file and the processes that use it. Each line is ok, warn or fail, with
    the way out. Changes nothing, and may be run beside workers. Exit code 1 if anything failed.

    \b
    Example:
      penstock doctor
      penstock doctor market.py --deep
    """
    checks = _examine(target, database, deep)
    failed = any(check.status == "fail" for check in checks)
    told = {"passed": not failed, "checks": [check._asdict() for check in checks]}
    output.show(told, lambda console: _draw(console, checks))
    return BAD_ANSWER if failed else FINE


def _examine(target: str | None, database: str | None, deep: bool) -> list[Check]:
    checks = list(checkup.machine())
    if any(check.name == "config" and check.status == "fail" for check in checks):
        return checks
    try:
        found = targets.find(target, database)
    except StoreUnavailable as error:
        return [*checks, Check("database", "warn", str(error), targets.NEXT_STEP)]
    except PenstockError as error:
        return [*checks, Check("app", "fail", str(error), "Put it right, or look at the database alone: `--database`.")]
    if found.file is not None:
        checks += checkup.surroundings(found.file)
    if found.app is not None and _is_missing(found):
        fix = f"`penstock run {target}` makes it."
        return [*checks, Check("database", "warn", f"There is no database {found.database} yet.", fix)]
    return [*checks, *checkup.database(found, deep=deep)]


def _is_missing(found: targets.Target) -> bool:
    try:
        return not targets.is_there(found)
    except PenstockError:
        return False  # there is something, and what is wrong with it is told


def _draw(console: Console, checks: list[Check]) -> None:
    from rich.padding import Padding

    for check in checks:
        console.print(f"{MARKS[check.status]}  [bold]{check.name:<9}[/] {plain(check.message)}")
        if check.fix:
            console.print(Padding(f"→ {plain(check.fix)}", (0, 0, 0, 16), expand=False))
    failed = sum(check.status == "fail" for check in checks)
    warned = sum(check.status == "warn" for check in checks)
    console.print(
        f"\n{len(checks)} checks, {failed} failed, {warned} to look at." if failed or warned else "\nAll is well."
    )
