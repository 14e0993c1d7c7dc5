"""Draws mutants by a seed: each area of the source gets a part of them in proportion to its lines."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

RULES = "src/penstock_systems/appstore"
AREAS: dict[str, tuple[str, ...]] = {
    **{name: (f"src/penstock/{name}",) for name in ("model", "storage", "queues", "workflows", "control")},
    "appstore": (
        *(f"{RULES}/{rules}" for rules in ("cluster", "crawl", "daily", "enrich", "evaluate", "opportunity")),
        *(f"{RULES}/{rules}.py" for rules in ("keywords", "scores", "sentiment")),
    ),
}


class Mutant(NamedTuple):
    """One change: the given occurrence of an operator of Cosmic Ray in a file."""

    file: str
    line: int
    text: str  # of the line, stripped
    operator: str
    occurrence: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.operator}"


class Equivalent(NamedTuple):
    """A mutant that no test can catch, and why."""

    file: str
    line: str
    operator: str
    reason: str

    def covers(self, mutant: Mutant) -> bool:
        return (self.file, self.line, self.operator) == (mutant.file, mutant.text, mutant.operator)


def listed_equivalents(root: Path) -> list[Equivalent]:
    """Return the mutants that `tests/mutants.toml` lists as equivalent."""
    found = tomllib.loads((root / "tests" / "mutants.toml").read_text("utf-8"))
    return [Equivalent(**each) for each in found.get("equivalent", [])]


def area_files(root: Path) -> dict[str, list[Path]]:
    """Return the Python files of each area, sorted."""
    return {
        area: sorted(
            path for each in places for path in ([root / each] if each.endswith(".py") else (root / each).rglob("*.py"))
        )
        for area, places in AREAS.items()
    }


def shares(lines: Mapping[str, int], number: int) -> dict[str, int]:
    """Divide `number` in proportion to the lines; the largest remainders are rounded up."""
    total = sum(lines.values())
    found = {area: number * count // total for area, count in lines.items()}
    by_remainder = sorted(lines, key=lambda area: (-(number * lines[area] % total), area))
    for area in by_remainder[: number - sum(found.values())]:
        found[area] += 1
    return found


def draw(
    files: Mapping[str, Sequence[Path]],
    seed: int,
    number: int,
    candidates: Callable[[Path], Mapping[int, list[Mutant]]],
    is_valid: Callable[[Mutant], bool] = lambda mutant: True,
) -> list[Mutant]:
    """Draw `number` mutants, at most one of a line. The same files and the same seed give the same mutants."""
    lines = {
        area: [(path, line) for path in paths for line in range(1, _count_lines(path) + 1)]
        for area, paths in files.items()
    }
    drawn: list[Mutant] = []
    for area, share in shares({area: len(found) for area, found in lines.items()}, number).items():
        random = Random(f"{seed} {area}")  # so that a change in one area leaves the mutants of the others as they are
        for path, line in random.sample(lines[area], len(lines[area])):
            at_line = candidates(path).get(line) if share else None
            if at_line and is_valid(chosen := random.choice(at_line)):
                drawn.append(chosen)
                share -= 1
    return drawn


def _count_lines(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())
