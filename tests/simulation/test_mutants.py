"""The test of the test: every planted bug is found by some history, while the engine as it is breaks no law on the same."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.extent import sampled
from tests.long_runs import LongRun
from tests.simulation.mutants import PATCHES, ROOT, SEEDS, bug_of, try_mutant


@sampled("patch", PATCHES, every=len(PATCHES) // 5, ids=lambda patch: patch.stem)
def test_a_planted_bug_is_found(patch: Path, note: Callable[[str], None], long_run: LongRun) -> None:
    verdict = try_mutant(patch)
    assert not verdict.trouble, verdict.trouble
    assert verdict.seed is not None, f"no history of {len(SEEDS)} shows that {bug_of(patch)}"
    long_run.counted("bugs planted for the simulator", found=1)
    note(f"mutant {patch.stem}: found at seed {verdict.seed}: {verdict.law}")


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_planted_bug_fits_the_engine_as_it_is(patch: Path) -> None:
    checked = subprocess.run(["git", "apply", "--check", str(patch)], cwd=ROOT, capture_output=True, text=True)
    assert checked.returncode == 0, f"make it anew: python -m tests.simulation.mutants {patch.stem}\n{checked.stderr}"


def test_there_are_bugs_enough() -> None:
    assert len(PATCHES) >= 25
    assert all(patch.read_text(encoding="utf-8").startswith("# ") for patch in PATCHES)
