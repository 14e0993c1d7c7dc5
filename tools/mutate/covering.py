"""Finds the tests that execute a line. They are recorded once into build/mutate; a changed test file is recorded again."""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import coverage

from tools.mutate.choosing import assigned, enclosing, header_end, quiet_seconds, varied
from tools.mutate.recording import FOLDER

# Killed processes and followed pages take minutes and rarely depend on one line; other systems do not look at the engine.
HISTORIES = "tests/simulation/test_simulator"  # they take seconds, and see what no single test looks for
FOLDERS = ("unit/", "contract/", "flow/", "systems/appstore/", "moving/", "upgrade/", "web/", "luck/")
FAULTS = (
    "crash/test_cut_off",
    "crash/test_injected",
    "crash/test_lost_answers",
)  # faults within the process of the test
RECORDED = (HISTORIES, *(f"tests/{name}" for name in (*FOLDERS, *FAULTS)))
FAST = 30  # tests before the histories
STATING = "tests.stated_numbers"  # the module of the tests that compare the numbers of pages with those of the code
LEFT_OUT = ("tests/unit/test_bench_", "tests/web/test_fuzz.py", "tests/systems/appstore/test_demo")
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tools.mutate.recording")


class Covering:
    """The recorded tests of a tree. Files are recorded in `copy`, so that nothing is written into the tree itself."""

    def __init__(self, root: Path, copy: Path) -> None:
        self._root = root
        self._copy = copy
        self._folder = root / "build" / "mutate"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.seconds: dict[str, float] = self._record()
        self._data = coverage.CoverageData(str(self._folder / "coverage"))
        self._data.read()

    def tests(self, file: str, line: int) -> list[str]:
        """Return the tests that execute the line: those of files that import the module before others, then those that
        execute some line of it, one case of each test before the second case of any, and fast ones first."""
        tree, lines = _parsed(self._root / file)
        near = self._importing(
            file.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
        )
        beside = self._executing(file, range(1, len(lines) + 1))
        statement, is_in_function = enclosing(tree, line)
        if is_in_function:
            found = self._executing(file, range(statement.lineno, header_end(statement) + 1))
            found = found or near  # an import alone executes it, as a function that makes a constant
        elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found = self._executing(file, range(statement.lineno + 1, (statement.end_lineno or 0) + 1))
            if not found or isinstance(statement, ast.ClassDef):  # a class without methods runs no line of its own
                found |= self._mentioning([statement.name])
        else:
            near |= self._importing(STATING)
            found = self._mentioning(assigned(statement)) or beside
            found |= near  # which look at a constant without executing a line that names it
        histories = {test for test in found if test.startswith(HISTORIES)}
        parts = (found & near, found & beside - near, found - beside - near)
        tests = [test for part in parts for test in varied(part - histories, self.seconds)]
        return [*tests[:FAST], *varied(histories, self.seconds), *tests[FAST:]]

    def _importing(self, module: str) -> set[str]:
        package, name = (re.escape(part) for part in module.rsplit(".", 1))
        importing = re.compile(
            rf"^\s*((from|import) {package}\.{name} |from {package} import (\([^)]*|.*)\b{name}\b)", re.MULTILINE
        )
        files = {test.split("::")[0] for test in self.seconds}
        near = {each for each in files if importing.search((self._root / each).read_text("utf-8"))}
        return {test for test in self.seconds if test.split("::")[0] in near}

    def _executing(self, file: str, lines: Iterable[int]) -> set[str]:
        by_line = self._by_line(file)
        return {test for line in lines for test in by_line.get(line, ()) if test in self.seconds}

    def _mentioning(self, names: Iterable[str]) -> set[str]:
        """Return the tests that execute a line with one of the names in it, in any file."""
        words = re.compile(rf"\b({'|'.join(names) or '$^'})\b")
        found: set[str] = set()
        for path in sorted((self._root / "src").rglob("*.py")):
            lines = [number for number, text in enumerate(_parsed(path)[1], 1) if words.search(text)]
            found |= self._executing(str(path.relative_to(self._root)), lines) if lines else set()
        return found

    @lru_cache(maxsize=64)  # noqa: B019  (one instance, for the length of the program)
    def _by_line(self, file: str) -> dict[int, list[str]]:
        found: dict[int, list[str]] = self._data.contexts_by_lineno(file)
        return found

    def _record(self) -> dict[str, float]:
        """Record the tests of new and changed files, and return the durations of all tests that passed."""
        now = _digests(self._root)
        state: dict[str, Any] = {"source": "", "files": {}, "seconds": {}}
        if (self._folder / "state.json").exists():
            state = json.loads((self._folder / "state.json").read_text("utf-8"))
        if state["source"] != now.pop(""):
            state = {"source": _digests(self._root)[""], "files": {}, "seconds": {}}
            (self._folder / "coverage").unlink(missing_ok=True)
        for folder in RECORDED:  # one after the other: a recording that was interrupted goes on where it was
            files = {file: digest for file, digest in now.items() if file.startswith(folder)}
            stale = sorted(file for file, digest in files.items() if state["files"].get(file) != digest)
            if stale:
                print(f"Recording which tests of {len(stale)} files in {folder} execute which lines.", flush=True)
                kept = {test: took for test, took in state["seconds"].items() if test.split("::")[0] not in stale}
                state["seconds"] = kept | self._run(stale)
                state["files"] |= files
                (self._folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
        return {test: took for test, took in state["seconds"].items() if took < math.inf and test.split("::")[0] in now}

    def _run(self, files: list[str]) -> dict[str, float]:
        for path in [*self._folder.glob("part*"), *self._folder.glob("seconds-*")]:
            path.unlink()
        subprocess.run(
            [*PYTEST, "-n", "2", "--dist", "worksteal", "--tb", "no", *files],
            cwd=self._copy,
            env=environment(self._copy) | {FOLDER: str(self._folder)},
            stdout=(self._folder / "recording.log").open("w"),
            stderr=subprocess.STDOUT,
            check=False,  # a test that fails here is never asked about a mutant
        )
        parts = sorted(str(path) for path in self._folder.glob("part.*"))
        combined = coverage.Coverage(data_file=str(self._folder / "coverage"), config_file=False, messages=False)
        combined.set_option("run:relative_files", True)
        if (self._folder / "coverage").exists():
            combined.load()  # otherwise combining begins anew
        combined.combine(parts, keep=False)
        combined.save()
        found: dict[str, tuple[float, float]] = {}
        for path in self._folder.glob("seconds-*.json"):
            found |= json.loads(path.read_text("utf-8"))
        return quiet_seconds(found)


def environment(tree: Path) -> dict[str, str]:
    """Return the variables under which Python imports the copy of the tree and not the tree."""
    return {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}


@cache
def _parsed(path: Path) -> tuple[ast.Module, list[str]]:
    text = path.read_text("utf-8")
    return ast.parse(text), text.splitlines()


def _digests(root: Path) -> dict[str, str]:
    """Return the digest of each recorded test file, and under the empty name that of the source and of shared test code."""
    shared = hashlib.sha256()
    found: dict[str, str] = {}
    for path in _inputs(root):
        file = str(path.relative_to(root))
        if path.name.startswith("test_") and file.startswith(RECORDED):
            if not file.startswith(LEFT_OUT):
                found[file] = hashlib.sha256(path.read_bytes()).hexdigest()
        elif not path.name.startswith("test_"):
            shared.update(file.encode() + path.read_bytes())
    return {"": shared.hexdigest(), **found}


def _inputs(root: Path) -> Iterator[Path]:
    for folder in ("src", "tests"):
        yield from (
            path for path in sorted((root / folder).rglob("*")) if path.is_file() and path.suffix in (".py", ".sql")
        )
