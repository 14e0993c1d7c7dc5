"""The demonstration: processes that are really killed, and what the receivers counted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.only_on("sqlite")
def test_the_demonstration_doubles_and_loses_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "OUT": str(tmp_path / "out"), "DAYS": "2", "KILLS": "3", "SEED": "2"}
    command = [sys.executable, "-m", "penstock_systems.reminders.demo"]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    found = json.loads((tmp_path / "out/report.json").read_text("utf-8"))
    assert found["figures"]["kills"] >= 2
    assert found["truth"]["arrived"] > 50
    assert {name: found["truth"][name] for name in ("doubled", "lost", "unrecorded")} == {
        "doubled": 0,
        "lost": 0,
        "unrecorded": 0,
    }
    assert "delivered twice" in (tmp_path / "out/report.html").read_text("utf-8")
