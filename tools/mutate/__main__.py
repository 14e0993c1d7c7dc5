"""Runs the covering tests on each drawn mutant and prints the share that they catch: `python -m tools.mutate --seed 1`."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from random import Random

from tools.mutate.choosing import cut
from tools.mutate.covering import PYTEST, Covering, environment
from tools.mutate.drawing import Mutant, area_files, draw, listed_equivalents
from tools.mutate.operators import candidates, compiles, difference, mutated
from tools.mutate.recording import LISTED

ROOT = Path(__file__).resolve().parent.parent.parent
LEAST = 0.85  # of the mutants that are not equivalent
EQUIVALENT_MOST = 15
NOT_COPIED = (".git", ".venv", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
BATCHES = ((30, 8.0), (300, 30.0), (1_000, 60.0))  # tests and recorded seconds at most: more for each that survives
STARTUP_SECONDS = 60.0
SLOWER = 6.0  # beside another mutant, on a busy machine
NICENESS = 10


def main() -> int:
    """Return 0 if the tests catch at least the share `LEAST`."""
    parser = argparse.ArgumentParser(prog="make mutate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    os.nice(NICENESS)
    equivalents = listed_equivalents(ROOT)
    assert len(equivalents) <= EQUIVALENT_MOST, f"tests/mutants.toml lists more than {EQUIVALENT_MOST} mutants"
    drawn = draw(
        area_files(ROOT),
        given.seed,
        given.mutants,
        lambda path: candidates(ROOT, path),
        lambda mutant: compiles(ROOT, mutant),
    )
    tested = [mutant for mutant in drawn if not any(each.covers(mutant) for each in equivalents)]
    Random(given.seed).shuffle(tested)  # so that the first of them, of a run that is interrupted, are a sample too
    with tempfile.TemporaryDirectory(prefix="p", ignore_cleanup_errors=True) as folder:
        survivors = _survivors(tested, [_copy(Path(folder, str(number))) for number in range(given.workers)])
    caught = len(tested) - len(survivors)
    share = caught / len(tested)
    print(
        f"mutants: {len(drawn)} drawn with seed {given.seed}, {len(drawn) - len(tested)} equivalent, "
        f"{caught} caught of {len(tested)} ({share:.1%})"
    )
    return int(share < LEAST)


def _survivors(mutants: Sequence[Mutant], trees: Sequence[Path]) -> list[Mutant]:
    """Try every mutant in one of the copies of the tree, and return those that no test catches."""
    covering = Covering(ROOT, trees[0])
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def attempt(mutant: Mutant) -> str:
        tree = free.get()
        try:
            return _try(tree, mutant, covering)
        finally:
            free.put(tree)

    found: list[Mutant] = []
    with ThreadPoolExecutor(len(trees)) as pool:
        for number, (mutant, outcome) in enumerate(zip(mutants, pool.map(attempt, mutants), strict=True), 1):
            print(f"{number:4} of {len(mutants)}, {len(found)} survived  {mutant}: {outcome}", flush=True)
            if outcome.startswith("survived"):
                print(difference((ROOT / mutant.file).read_text("utf-8"), mutant), flush=True)
                found.append(mutant)
    return found


def _copy(folder: Path) -> Path:
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    (folder / ".tmp").mkdir()
    return folder


def _try(tree: Path, mutant: Mutant, covering: Covering) -> str:
    tests = covering.tests(mutant.file, mutant.line)
    if not tests:
        return "survived: no recorded test executes the line"
    began = time.monotonic()
    asked = 0
    with _changed(tree, mutant):
        for most, seconds in BATCHES:
            batch = cut(tests[asked:], most, seconds, covering.seconds)
            asked += len(batch)
            if batch and (how := _run(tree, batch, SLOWER * sum(covering.seconds[test] for test in batch))):
                return f"{how} in {time.monotonic() - began:.0f} s"
    return f"survived {asked} of {len(tests)} tests in {time.monotonic() - began:.0f} s"


@contextmanager
def _changed(tree: Path, mutant: Mutant) -> Iterator[None]:
    """Put the change into the copy. Python compares modification times in seconds, so its bytecode is removed too."""
    path = tree / mutant.file
    bytecode = Path(cache_from_source(str(path)))
    original = path.read_text("utf-8")
    try:
        bytecode.unlink(missing_ok=True)
        path.write_text(mutated(original, mutant), encoding="utf-8")
        yield
    finally:
        path.write_text(original, encoding="utf-8")
        bytecode.unlink(missing_ok=True)


def _run(tree: Path, tests: Sequence[str], seconds: float) -> str:
    """Run the tests until the first failure and return how they caught the change, or nothing."""
    listed = tree / ".tmp" / "tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    written = tree / ".tmp" / "written.txt"
    files = list(dict.fromkeys(test.split("::")[0] for test in tests))
    process = subprocess.Popen(
        [*PYTEST, "-x", "--tb=no", "-rfE", *files],
        cwd=tree,
        env=environment(tree) | {LISTED: str(listed)},
        stdout=written.open("w", encoding="utf-8"),
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        ended = process.wait(STARTUP_SECONDS + seconds)
        return (
            "" if ended in (0, 5) else f"caught by {_failed(written.read_text('utf-8'))}"
        )  # 5: the change renamed the cases
    except subprocess.TimeoutExpired:
        return "caught by its time"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _failed(written: str) -> str:
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", written, re.MULTILINE)
    return found.group(1) if found else "what it does to pytest"


if __name__ == "__main__":
    sys.exit(main())
