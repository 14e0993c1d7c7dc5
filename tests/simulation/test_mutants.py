"""The test of the test: every planted bug is found by some history, while the engine as it is breaks no law on the same."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from random import Random

import pytest

from tests.conftest import SEED
from tests.extent import EVERYTHING
from tests.simulation.mutants import PATCHES, SEEDS, Verdict, bug_of, try_mutant

Tried = dict[str, Future[Verdict]]
SAMPLE = len(PATCHES) if EVERYTHING else 5  # others on every run; `make simulate` tries all of them


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "patch" in metafunc.fixturenames:
        drawn = Random(metafunc.config.stash[SEED]).sample(PATCHES, SAMPLE)
        metafunc.parametrize("patch", sorted(drawn), ids=lambda patch: patch.stem)


@pytest.fixture(scope="module")
def tried(request: pytest.FixtureRequest) -> Tried:
    """All are tried at once, two at a time; each stops at the first history that shows its bug."""
    pool = ThreadPoolExecutor(2)
    chosen = [
        item.callspec.params["patch"]
        for item in request.session.items
        if hasattr(item, "callspec") and item.path == request.path and "patch" in item.callspec.params
    ]
    return {patch.stem: pool.submit(try_mutant, patch) for patch in chosen}


def test_a_planted_bug_is_found(patch: Path, tried: Tried, note: Callable[[str], None]) -> None:
    verdict = tried[patch.stem].result()
    assert not verdict.trouble, verdict.trouble
    assert verdict.seed is not None, f"no history of {len(SEEDS)} shows that {bug_of(patch)}"
    note(f"mutant {patch.stem}: found at seed {verdict.seed}: {verdict.law}")


def test_there_are_bugs_enough() -> None:
    assert len(PATCHES) >= 25
    assert all(patch.read_text(encoding="utf-8").startswith("# ") for patch in PATCHES)
