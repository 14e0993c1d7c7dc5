"""`penstock audit-services`: what is left to do until services send messages instead of calling each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from penstock.cli.command import CliCommand
from penstock.cli.output import BAD_ANSWER, FINE, Answer, Marked
from penstock.readiness.migration import STEPS, Leftover, audit


@click.command("audit-services", cls=CliCommand)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
def audit_services(folder: Path) -> Answer:
    """Read services that call each other, and list what is left of the ten steps to messages.

    FOLDER has a folder of Python files for each service. Nothing is imported or run, and the services need not use Penstock.
    Exit code 1 if a step has something left.

    Example:
      penstock audit-services ./services
    """
    found = list(audit(folder))
    steps = [
        {
            "step": number,
            "name": name,
            "status": "fail" if left else "pass",
            "findings": [each._asdict() for each in left],
        }
        for number, name in enumerate(STEPS, 1)
        for left in [[each for each in found if each.step == number]]
    ]
    parts = [
        _mark(number, name, [each for each in found if each.step == number]) for number, name in enumerate(STEPS, 1)
    ]
    return Answer({"passed": not found, "steps": steps}, *parts, code=BAD_ANSWER if found else FINE)


def _mark(number: int, name: str, found: Sequence[Leftover]) -> Marked:
    lines = []
    for each in found:
        place = f"{each.file}:{each.line}: " if each.line else f"{each.service}: "
        lines += [f"{place}{each.message}", f"→ {each.fix}"]
    return Marked("fail" if found else "pass", f"{number}. {name}", *lines)
