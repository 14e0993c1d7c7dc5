"""Runs the whole suite on both cores of a small machine, and the types beside it: `python -m tests.both_halves`.

Two processes share what computes; a third one has the crashes and the bad luck, which wait for most of their time. All
report as pytest does, one while it runs and the others after it, and one closing line counts all of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from tests.bytecode import compile_all
from tests.plugins.spec_report import PART_VARIABLE, write

ROOT = Path(__file__).resolve().parent.parent
CRASHES = ("tests/crash", "tests/luck")
FIRST = (
    *("tests/contract", "tests/simulation", "tests/web", "tests/systems", "tests/moving"),
    *("tests/test_examples.py", "tests/test_docs.py"),
)
MEMORY = Path("/dev/shm")  # what computes keeps its files there: a disk makes them wait, and nobody cuts their power
MEMORY_BYTES = 2_000_000_000  # as much has to be free of it
TYPES = ("mypy", "--strict")
TYPES_NICE = 5  # so that they take what the tests leave
CLOSING = re.compile(r"^(?:=+ )?((?:\d+ \w+(?:, )?)+) in [\d.]+s", re.MULTILINE)


def main() -> int:
    began = time.perf_counter()
    compile_all()
    second = ("tests", *(f"--ignore={each}" for each in (*CRASHES, *FIRST)))
    beside = {"The first half": FIRST, "The crashes": CRASHES}
    with tempfile.TemporaryDirectory(prefix="penstock-halves-") as folder, ExitStack() as files:
        types = _Types()
        memory = files.enter_context(_in_memory())
        said = {name: Path(folder, f"{number}.txt") for number, name in enumerate(beside)}
        parts = [Path(folder, f"{number}.json") for number in range(len(beside) + 1)]
        started = [
            _start(
                arguments,
                part,
                {} if arguments is CRASHES else memory,
                stdout=files.enter_context(said[name].open("w")),
            )
            for (name, arguments), part in zip(beside.items(), parts[1:], strict=True)
        ]
        shown = _start(second, parts[0], memory, stdout=subprocess.PIPE)
        assert shown.stdout is not None
        told = ""
        for line in shown.stdout:
            told += line
            print(line, end="", flush=True)
        codes = [process.wait() for process in (shown, *started)]
        for name, path in said.items():
            print(f"\n{name}, which ran beside it:\n\n{path.read_text()}", flush=True)
            told += path.read_text()
        codes.append(types.wait())
        if not any(codes) and all(part.exists() for part in parts):
            write(ROOT / "build" / "spec.json", _merged(parts))
        _close(told, time.perf_counter() - began)
    return next((abs(code) for code in codes if code), 0)


class _Types:
    """Mypy. What it finds is shown as soon as it is known."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", *TYPES],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=partial(os.nice, TYPES_NICE),
        )
        self._said = ""
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    def _listen(self) -> None:
        self._said, _ = self._process.communicate()
        if self._process.returncode:
            print(f"\n{self._said}", flush=True)

    def wait(self) -> int:
        self._listening.join()
        print(f"Types: {self._said.strip().rpartition(chr(10))[2]}", flush=True)
        return self._process.returncode


@contextmanager
def _in_memory() -> Iterator[dict[str, str]]:
    """The variable that makes a process keep its temporary files in memory, where there is room for them."""
    if not (os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES):
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="p", dir=MEMORY, ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)  # PostgreSQL refuses to be root, and has to get there as somebody else
        yield {"TMPDIR": folder}


def _start(
    arguments: Sequence[str], part: Path, environment: dict[str, str], stdout: int | IO[str]
) -> subprocess.Popen[str]:
    wide = os.environ.get("COLUMNS", "100")
    environment = {**os.environ, **environment, PART_VARIABLE: str(part), "COLUMNS": wide}
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
