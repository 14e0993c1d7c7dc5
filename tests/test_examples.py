"""Every example runs in an empty folder, and says something."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extent import patient
from tests.postgres import server

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))
SAYS = {
    "approval.py": "Shoes: rejected without an answer\nSocks: rejected by Bob",
    "batches.py": "9 scored, 1 waits for its retry",
    "dead_letters.py": "kept: 2026-11-15, 2026-11-16, 2026-11-17",
    "fan_out.py": "40 keywords, 390 results, each counted once",
    "first_pipeline.py": "100 apps",
    "killed_in_the_middle.py": "0 lost",
    "order.py": "the bank was called 4 times and has 49.00, for one lamp",
}


BOTH = pytest.mark.parametrize("store", ["sqlite", "postgres"])
SMALL = {"MESSAGES": "400", "KILLS": "2"}  # larger runs are in tests/crash


@BOTH
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_does_what_it_says(example: Path, store: str, tmp_path: Path) -> None:
    shutil.copytree(example.parent, tmp_path / "examples")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    environment |= kept_on(store) | SMALL

    ran = subprocess.run(
        [sys.executable, f"examples/{example.name}"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=patient(120),
    )

    assert ran.returncode == 0, ran.stderr
    assert SAYS[example.name] in ran.stdout


def kept_on(store: str) -> dict[str, str]:
    return {"PENSTOCK_DATABASE": server().new_database()} if store == "postgres" else {}
