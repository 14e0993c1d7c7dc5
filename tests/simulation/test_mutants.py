"""The test of the test: every planted bug is found by some history, while the engine as it is breaks no law on the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.simulation.mutants import PATCHES, SEEDS, Verdict, bug_of, try_mutant

Tried = dict[str, Future[Verdict]]


@pytest.fixture(scope="module")
def tried() -> Tried:
    """All are tried at once, two at a time; each stops at the first history that shows its bug."""
    pool = ThreadPoolExecutor(2)
    return {patch.stem: pool.submit(try_mutant, patch) for patch in PATCHES}


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: patch.stem)
def test_a_planted_bug_is_found(patch: Path, tried: Tried, note: Callable[[str], None]) -> None:
    verdict = tried[patch.stem].result()
    assert not verdict.trouble, verdict.trouble
    assert verdict.seed is not None, f"no history of {len(SEEDS)} shows that {bug_of(patch)}"
    note(f"mutant {patch.stem}: found at seed {verdict.seed}: {verdict.law}")


def test_there_are_bugs_enough() -> None:
    assert len(PATCHES) >= 10
    assert all(patch.read_text(encoding="utf-8").startswith("# ") for patch in PATCHES)
