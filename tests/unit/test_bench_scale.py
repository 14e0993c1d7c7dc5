"""The benchmark of many workers runs from end to end and writes what its readers rely on. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.report import Report
from bench.scale import NOOP, WAITING, Point, fill

PROGRAMME = Path(__file__).resolve().parents[2] / "bench" / "scale.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench")
    chosen = ("--smoke", "--workers", "1", "2", "--seed", "7", "--out", str(made))
    ended = subprocess.run(
        [sys.executable, str(PROGRAMME), *chosen], cwd=made, capture_output=True, text=True, timeout=300
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "scale.json").read_text("utf-8"))
    return report


@pytest.mark.slow
@pytest.mark.slow
def test_each_number_of_workers_has_a_throughput_and_latencies(found: dict[str, Any]) -> None:
    assert (found["name"], found["seed"]) == ("scale", 7)
    measures = [row["measure"] for row in found["rows"]]
    assert measures == [
        f"{kind}, {workers} workers, {what}"
        for kind in (WAITING, NOOP)
        for workers in (1, 2)
        for what in ("throughput", "send to handler, p50", "send to handler, p99")
    ]
    assert all(row["value"] > 0 and row["store"] == "postgres" for row in found["rows"])


@pytest.mark.slow
def test_nothing_is_left_but_the_figures_and_the_plot(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["scale.json", "scale.svg"]
    assert ElementTree.parse(folder / "scale.svg").getroot().tag.endswith("svg")


def test_only_handlers_that_wait_have_to_grow_with_their_workers() -> None:
    report = Report("scale", 1)
    fill(
        report,
        [
            Point(WAITING, 1, 800.0, 1.0, 2.0),
            Point(WAITING, 2, 1_500.0, 1.0, 2.0),
            Point(WAITING, 8, 3_200.0, 1.0, 2.0),
            Point(NOOP, 1, 9_000.0, 1.0, 2.0),
            Point(NOOP, 8, 9_000.0, 1.0, 2.0),
        ],
    )
    assert [(bar.value, bar.passed) for bar in report.bars] == [(1_500 / 1_600, True), (0.5, False)]
