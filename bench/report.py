"""What a benchmark found: rows for `build/bench/<name>.json`, a table for the reader, and the bars it had to reach."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from typing import Any

import apsw

import penstock

PACE_CHANGE_MAX = 2.5  # the slow and fast phases of a shared disk are a factor of 5 to 20 apart
ROOT = Path(__file__).resolve().parent.parent
SMALLER = ("smoke", "quick", "brief")  # the sizes that are options; without one of them a benchmark is full


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `reference` is what it is compared with, in the same unit; `ratio` is the figure divided by it."""

    subject: str
    measure: str
    value: float
    unit: str
    reference: float | None = None
    ratio: float | None = None
    store: str = "sqlite"
    durability: str = "full"


@dataclass(slots=True)
class Pair:
    """A figure of ours and its reference, taken one after the other in every round, with the disk's pace in between.

    In a slow phase of the disk the side with fewer commits wins, whatever it does otherwise: such rounds are shown, but
    only those near the disk's best pace count.
    """

    measure: str
    unit: str
    ours: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)
    fdatasync_ms: list[float] = field(default_factory=list)
    best_ms: float = math.inf  # the disk's best pace, where it was seen outside of these rounds too
    subject: str = "penstock"
    store: str = "sqlite"
    durability: str = "full"

    def add(self, *, ours: float, reference: float, fdatasync_ms: float) -> None:
        self.ours.append(ours)
        self.reference.append(reference)
        self.fdatasync_ms.append(fdatasync_ms)

    @property
    def ratios(self) -> list[float]:
        return [ours / reference for ours, reference in zip(self.ours, self.reference, strict=True)]

    @property
    def counted(self) -> list[bool]:
        best = min(self.best_ms, *self.fdatasync_ms)
        return [pace < PACE_CHANGE_MAX * best for pace in self.fdatasync_ms]

    @property
    def sure(self) -> bool:
        return any(self.counted)

    @property
    def ratio(self) -> float:
        """The median of the rounds' ratios, not the ratio of medians: each round has its own disk."""
        return self._median(self.ratios)

    def _median(self, values: list[float]) -> float:
        return statistics.median(compress(values, self.counted) if self.sure else values)

    def row(self) -> Row:
        ours, reference = self._median(self.ours), self._median(self.reference)
        return Row(self.subject, self.measure, ours, self.unit, reference, self.ratio, self.store, self.durability)

    def rows(self, reference_name: str) -> list[Row]:
        reference = Row(reference_name, self.measure, self._median(self.reference), self.unit, store=self.store)
        return [self.row(), reference]


@dataclass(frozen=True, slots=True)
class Bar:
    """A figure that has to be at least, or at most, so much. Where the disk was slow throughout, nobody can tell."""

    measure: str
    value: float
    limit: float
    at_most: bool
    unit: str
    sure: bool = True

    @property
    def passed(self) -> bool | None:
        if not self.sure:
            return None
        return self.value <= self.limit if self.at_most else self.value >= self.limit

    def __str__(self) -> str:
        verdict = {True: "PASS  ", False: "BELOW ", None: "UNSURE"}[self.passed]
        side = "at most" if self.at_most else "at least"
        return f"{verdict}  {self.measure}: {self.value:.3g} {self.unit} ({side} {self.limit:g})"


@dataclass(slots=True)
class Report:
    name: str
    seed: int
    rows: list[Row] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    bars: list[Bar] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    suspects: list[dict[str, str]] = field(default_factory=list)
    peer_versions: dict[str, str] = field(default_factory=dict)
    fdatasync_p50_ms: float = 0.0
    neighbours_cores: float | None = None
    size: str = "full"
    settings: dict[str, str] = field(default_factory=dict)  # how much was measured, in words

    def skip(self, subject: str, reason: str) -> None:
        self.skipped.append({"subject": subject, "reason": reason})

    def suspect(self, subject: str, reason: str) -> None:
        """Its figures are shown, but it did not run as it should."""
        self.suspects.append({"subject": subject, "reason": reason})

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "commit": commit(),
            "seed": self.seed,
            "date": datetime.now(UTC).isoformat(" ", "minutes")[:16],
            "size": self.size,
            "arguments": arguments(),
            "settings": self.settings,
            "versions": versions() | self.peer_versions,
            "machine": _rounded(
                {
                    "cores": os.cpu_count(),
                    "fdatasync_p50_ms": self.fdatasync_p50_ms,
                    "neighbours_cores": self.neighbours_cores,
                }
            ),
            "rows": [_rounded(asdict(row)) for row in self.rows],
            "rounds": [
                _rounded(asdict(pair) | {"ratios": pair.ratios, "counted": pair.counted}) for pair in self.pairs
            ],
            "bars": [_rounded(asdict(bar) | {"passed": bar.passed}) for bar in self.bars],
            "skipped": self.skipped,
            "suspects": self.suspects,
        }

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(self.as_json(), indent=2) + "\n", encoding="utf-8")
        return path


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Columns as wide as they need to be: the first to the left, the others to the right."""
    all_lines = [head, *lines]
    widths = [max(len(line[column]) for line in all_lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in all_lines
    )


def number(value: float) -> str:
    """Three digits that matter, and thousands set apart."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def size_of(options: argparse.Namespace) -> str:
    """The size that was asked for."""
    return next((size for size in SMALLER if getattr(options, size, False)), "full")


def arguments() -> list[str]:
    """What the benchmark was told on its command line, but for where its results go."""
    given = sys.argv[1:] if Path(sys.argv[0]).resolve().parent == ROOT / "bench" else []
    if "--out" in given:
        del given[given.index("--out") : given.index("--out") + 2]
    return [each for each in given if not each.startswith("--out=")]


def versions() -> dict[str, str]:
    return {
        "penstock": penstock.__version__,
        "python": platform.python_version(),
        "apsw": apsw.apsw_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def commit() -> str:
    """The commit that was measured, with a plus behind it where files differ from it."""
    head = _git("rev-parse", "HEAD")
    return f"{head}+" if head and _git("status", "--porcelain") else head or "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "--no-optional-locks", "-c", "safe.directory=*", *arguments]
    try:
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _rounded(values: dict[str, Any]) -> dict[str, Any]:
    """Six digits that matter: more would only say how the noise fell."""
    return {name: _short(value) for name, value in values.items()}


def _short(value: Any) -> Any:
    if isinstance(value, list):
        return [_short(each) for each in value]
    if value == math.inf:
        return None  # JSON has no word for it
    return float(f"{value:.6g}") if isinstance(value, float) else value
