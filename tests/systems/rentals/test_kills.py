"""Processes that are killed in real time neither lose nor double a row or a notice."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.postgres import empty_database

FAULTS = (
    *(
        "records_lost",
        "versions_doubled",
        "not_cut",
        "new_missing",
        "new_doubled",
        "cheaper_missing",
        "cheaper_doubled",
    ),
    *("unsent", "arrived_twice"),
)


@pytest.mark.slow("postgres")
@pytest.mark.parametrize("kills", [6, pytest.param(500, marks=pytest.mark.slow)])
def test_kills_neither_lose_nor_double_a_row_or_a_notice(kept_on: str, kills: int, seed: int, tmp_path: Path) -> None:
    database = str(tmp_path / "rentals.db") if kept_on == "sqlite" else empty_database()
    command = [
        sys.executable,
        "-m",
        "tests.systems.rentals.killed",
        database,
        str(kills),
        str(seed),
        str(tmp_path / "sent"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1_800, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["listings"] >= 10 + kills
    assert {name: found[name] for name in FAULTS} == dict.fromkeys(FAULTS, 0), found
