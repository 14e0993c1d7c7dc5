"""The week of `make demo-brand`: what its page claims is what the fakes counted, in both modes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
@pytest.mark.spec("D-06", "A12-04")
def test_the_week_ends_with_the_predicted_messages_and_no_post_twice(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock_systems.brand.demo"]
    subprocess.run(command, env={**os.environ, "OUT": str(tmp_path / "out")}, check=True, stdout=subprocess.DEVNULL)

    report = json.loads((tmp_path / "out" / "report.json").read_text("utf-8"))
    for run in report["runs"]:
        figures, truth = run["figures"], run["truth"]
        assert figures["messages"] == figures["messages_predicted"]
        assert figures["posted"] == truth["posts_arrived"]
        assert truth["posts_doubled"] == figures["posts_unknown"] == 0
        assert figures["published"] + figures["rejected"] + figures["failed"] == 12
        assert (figures["edited"], figures["rejected"]) == (1, 1)
    assert "Both ways to run it" in (tmp_path / "out" / "report.html").read_text("utf-8")
