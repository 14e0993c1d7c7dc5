"""Counts of the long runs (`make crash`, `make simulate`), kept by the engine they tested: `python -m tests.long_runs`.

A long run may be split over several days. Each test appends a line with the hash of the engine's source, whether it passed
or failed; the page sums the lines of one engine.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINES = ROOT / "docs" / "explain" / "long-runs.jsonl"
PAGE = ROOT / "docs" / "explain" / "proof.md"
BEGIN, END = "<!-- runs:begin -->\n", "<!-- runs:end -->\n"
RECORDING = "PENSTOCK_RECORD" in os.environ
# The crash tests and the simulator run none of it.
NOT_THE_ENGINE = ("cli", "views", "web", "connect", "channels", "recurrence", "services", "topics", "telemetry.py")


@cache
def engine_hash(source: Path = ROOT / "src" / "penstock") -> str:
    digest = sha256()
    for path in sorted(path for path in source.rglob("*") if path.suffix in (".py", ".sql")):
        name = path.relative_to(source).as_posix()
        if not name.startswith(NOT_THE_ENGINE):
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def record(run: str, counts: dict[str, int], *, failed: bool, first: int | None = None, lines: Path = LINES) -> None:
    """Append what a run counted. `first` is the first of its seeds, for a run over a range of them."""
    day = datetime.now(UTC).date().isoformat()
    where = {} if first is None else {"first": first}
    line = {"engine": engine_hash(), "day": day, "run": run, "failed": failed, **where, "counts": counts}
    with lines.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def next_seed(run: str, lines: Path = LINES) -> int:
    """Return the first seed that no recorded run has tried on this engine."""
    mine = [line for line in _read(lines) if (line["engine"], line["run"]) == (engine_hash(), run)]
    return max((line["first"] + line["counts"]["histories"] for line in mine), default=0)


class LongRun:
    """What one test counts; recorded when it has ended, under the name of the test if it ended before it could count."""

    def __init__(self, test: str) -> None:
        self._name = test
        self._counts: dict[str, int] = {}

    def counted(self, run: str, **counts: int) -> None:
        self._name, self._counts = run, counts

    def record(self, *, failed: bool, lines: Path = LINES) -> None:
        record(self._name, self._counts, failed=failed, lines=lines)


def table(lines: Path = LINES) -> str:
    """Sum the runs of the engine that was tested last."""
    read = _read(lines)
    if not read:
        return "No long run has been recorded.\n"
    engine = read[-1]["engine"]
    mine = [line for line in read if line["engine"] == engine]
    days = sorted({line["day"] for line in mine})
    parts = [f"Engine `{engine}`, {' to '.join(dict.fromkeys((days[0], days[-1])))}.\n\n"]
    parts.append("| Run | Times | Counted | Failed |\n|---|--:|---|--:|\n")
    for run in dict.fromkeys(line["run"] for line in mine):
        those = [line for line in mine if line["run"] == run]
        counts: Counter[str] = Counter()
        for line in those:
            counts.update(line["counts"])
        counted = ", ".join(f"{count:,} {what.replace('_', ' ')}" for what, count in counts.items())
        parts.append(f"| {run} | {len(those)} | {counted} | {sum(line['failed'] for line in those)} |\n")
    return "".join(parts)


def page(text: str, shown: str) -> str:
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}{shown}{END}{rest.partition(END)[2]}"


def _read(lines: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.read_text("utf-8").splitlines()] if lines.exists() else []


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8"), table()), "utf-8")
