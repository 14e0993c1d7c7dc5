"""Planted bugs: each patch is one, and a simulator that does not find it proves nothing about the rest.

A patch opens with the bug in words, the world whose law it breaks unless that is the one of messages, and the seed that
showed it last, which is tried first. `python -m tests.simulation.mutants` makes the patches anew after the engine has
changed, wherever each still has its place; with names it makes only those.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATCHES = sorted((Path(__file__).parent / "mutants").glob("*.patch"))
SECONDS_MAX = 300  # real ones, for one mutant on a busy machine
SEEDS = range(200)  # the histories in which each is to be found, and in which the engine as it is breaks no law
SHOWN_BY = "# shown by seed "
WORLD = "# world "

# The copy must be what is imported, or every mutant would be as healthy as the original.
RUN = """
import runpy, sys
import penstock
folder = sys.argv.pop(1)
assert penstock.__file__.startswith(folder), penstock.__file__
runpy.run_module("tests.simulation", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`seed` is the first that shows the bug, None if none did."""

    name: str
    seed: int | None
    law: str
    trouble: str = ""


def bug_of(patch: Path) -> str:
    return patch.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def seed_of(patch: Path) -> int | None:
    """The seed that showed the bug when somebody looked last; after a change of the engine another one may."""
    found = re.search(f"^{SHOWN_BY}(\\d+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    return None if found is None else int(found[1])


def world_of(patch: Path) -> str:
    found = re.search(f"^{WORLD}(\\w+)$", patch.read_text(encoding="utf-8"), re.MULTILINE)
    return "messages" if found is None else found[1]


def try_mutant(patch: Path, seeds: range = SEEDS) -> Verdict:
    """Plants the bug in a copy of the engine and runs histories on it until one breaks the law."""
    with tempfile.TemporaryDirectory(prefix="penstock-mutant-") as folder:
        # With its bytecode, which holds for every file that still has its time: only what is patched is compiled.
        shutil.copytree(ROOT / "src", Path(folder, "src"))
        planted = subprocess.run(
            ["git", "apply", "--unsafe-paths", f"--directory={folder}", str(patch)],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        if planted.returncode or not differ(ROOT / "src", Path(folder, "src")):
            why = (
                f"{patch.name} no longer fits the engine. Make it anew with `python -m tests.simulation.mutants`, or by "
                f"hand, so that it still plants this bug: {bug_of(patch)}\n{planted.stderr}"
            )
            return Verdict(patch.stem, None, "", why)
        known = seed_of(patch)
        if known is not None and known in seeds:
            verdict = _run(patch, Path(folder, "src"), range(known, known + 1))
            if verdict.seed is not None or verdict.trouble:
                return verdict
        return _run(patch, Path(folder, "src"), seeds)


def differ(one: Path, other: Path) -> bool:
    """A patch that was skipped without a word would leave the copy as it was."""
    return any(
        path.read_bytes() != (other / path.relative_to(one)).read_bytes()
        for suffix in ("*.py", "*.sql")
        for path in one.rglob(suffix)
    )


def _run(patch: Path, source: Path, seeds: range) -> Verdict:
    asked = ["--world", world_of(patch), "--first", str(seeds.start), "--seeds", str(len(seeds)), "--jobs", "1"]
    command = [sys.executable, "-c", RUN, str(source), *asked]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": f"{source}:{ROOT}", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
    )
    found = re.search(r"^seed (\d+)@\S* broke the law: (.*)$", ran.stdout, re.MULTILINE)
    if found is not None:
        return Verdict(patch.stem, int(found[1]), found[2])
    trouble = "" if ran.returncode == 0 else f"the simulator ended with {ran.returncode}:\n{ran.stdout}\n{ran.stderr}"
    return Verdict(patch.stem, None, "", trouble)


def make_anew(patch: Path) -> str:
    """The same bug in the code as it is now; empty if it has no place there any more. Needs the program `patch`."""
    with tempfile.TemporaryDirectory(prefix="penstock-mutant-") as folder:
        shutil.copytree(ROOT / "src", Path(folder, "src"), ignore=shutil.ignore_patterns("__pycache__"))
        command = ["patch", "-p1", "--fuzz=3", "--silent", "--no-backup-if-mismatch", "-i", str(patch)]
        if subprocess.run(command, cwd=folder, capture_output=True).returncode:
            return ""
        lines: list[str] = []
        for name in sorted(set(re.findall(r"^--- a/(\S+)", patch.read_text(encoding="utf-8"), re.MULTILINE))):
            before = (ROOT / name).read_text(encoding="utf-8").splitlines(keepends=True)
            after = Path(folder, name).read_text(encoding="utf-8").splitlines(keepends=True)
            lines += difflib.unified_diff(before, after, f"a/{name}", f"b/{name}", n=2)
        return "".join(lines)


def renew(patch: Path) -> str:
    """Makes a patch anew, looks which seed shows its bug, and notes it."""
    bug, changes = bug_of(patch), make_anew(patch)
    if not changes:
        return f"has no place any more: {bug}"
    before = patch.read_text(encoding="utf-8").splitlines(keepends=True)
    world = "".join(line for line in before if line.startswith(WORLD))
    noted = "".join(line for line in before if line.startswith(SHOWN_BY))
    patch.write_text(f"# {bug}\n{world}{noted}{changes}", encoding="utf-8")
    verdict = try_mutant(patch)
    if verdict.seed is None:
        return verdict.trouble or f"no history of {len(SEEDS)} shows it any more: {bug}"
    patch.write_text(f"# {bug}\n{world}{SHOWN_BY}{verdict.seed}\n{changes}", encoding="utf-8")
    return f"shown by seed {verdict.seed}: {verdict.law}"


if __name__ == "__main__":
    for each in PATCHES:
        if not sys.argv[1:] or each.stem in sys.argv[1:]:
            print(f"{each.stem}: {renew(each)}", flush=True)
