"""Runs the whole suite in two processes at once, since a small machine has two cores: `python -m tests.both_halves`.

One half is what waits for processes, disks and seeds; the other is the rest. Both report as pytest does, the first half
after the second, and one closing line counts both.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tests.plugins.spec_report import PART_VARIABLE, write

ROOT = Path(__file__).resolve().parent.parent
FIRST = (
    *("tests/crash", "tests/luck", "tests/simulation", "tests/web", "tests/systems", "tests/moving"),
    *("tests/test_examples.py", "tests/test_docs.py"),
    *(str(path.relative_to(ROOT)) for path in sorted(ROOT.glob("tests/unit/test_cli_*.py"))),
)
CLOSING = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)


def main() -> int:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="penstock-halves-") as folder:
        parts = [Path(folder, "first.json"), Path(folder, "second.json")]
        said = Path(folder, "first.txt")
        second = ["tests", *(f"--ignore={each}" for each in FIRST)]
        with said.open("w") as output:
            slow = _start(FIRST, parts[0], stdout=output)
            quick = _start(second, parts[1], stdout=subprocess.PIPE)
            assert quick.stdout is not None
            told = ""
            for line in quick.stdout:
                told += line
                print(line, end="", flush=True)
            codes = [slow.wait(), quick.wait()]
        print("\nThe other half, which ran beside it:\n", flush=True)
        print(said.read_text(), flush=True)
        if max(codes) == 0 and all(part.exists() for part in parts):
            write(ROOT / "build" / "spec.json", _merged(parts))
        _close(told + said.read_text(), time.perf_counter() - began)
    return max(codes)


def _start(arguments: Sequence[str], part: Path, stdout: int | IO[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, PART_VARIABLE: str(part), "COLUMNS": os.environ.get("COLUMNS", "100")}
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stdout, stderr=subprocess.STDOUT, text=True)


def _merged(parts: list[Path]) -> dict[str, list[str]]:
    merged: dict[str, list[str]] = {}
    for part in parts:
        for id, tests in json.loads(part.read_text()).items():
            merged.setdefault(id, []).extend(tests)
    return {id: sorted(tests) for id, tests in sorted(merged.items())}


def _close(told: str, seconds: float) -> None:
    counts: Counter[str] = Counter()
    for found in CLOSING.findall(told):
        for number, what in re.findall(r"(\d+) (\w+)", found):
            counts[what] += int(number)
    summed = ", ".join(f"{number} {what}" for what, number in sorted(counts.items())) or "no tests ran"
    print(f"===== {summed} in {seconds:.2f}s =====", flush=True)


if __name__ == "__main__":
    sys.exit(main())
