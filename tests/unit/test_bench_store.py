"""The store's benchmark runs from end to end and writes what its readers rely on. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

PROGRAMME = Path(__file__).resolve().parents[2] / "bench" / "store.py"
ROW = {"subject", "store", "measure", "value", "unit", "reference", "ratio", "durability"}
COMPARED = (
    "enqueue, units of 100",
    "claim-run-settle, no-op",
    "claim-run-settle, one write and one send",
    "producers and consumer together",
    "idle send to handler, p50",
    "idle send to handler, p99",
)
ON_POSTGRES = tuple(f"{measure}, PostgreSQL" for measure in COMPARED)
ALONE = ("idle processor time", "idle pages with rows looked at", "resident memory after the runs")
BARS = 8


# `make bench` runs it as well, and looks at every figure.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bench")
    command = [sys.executable, str(PROGRAMME), "--smoke", "--seed", "7", "--out", str(made)]
    ended = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    judged = [line for line in ended.stdout.splitlines() if line.startswith(("PASS", "BELOW", "UNSURE"))]
    assert len(judged) == BARS, ended.stdout
    return made


@pytest.fixture(scope="module")
def found(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "store.json").read_text("utf-8"))
    return report


def test_the_report_has_the_promised_shape(found: dict[str, Any]) -> None:
    assert {"name", "commit", "seed", "versions", "machine", "rows", "skipped"} <= found.keys()
    assert (found["name"], found["seed"]) == ("store", 7)
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["fdatasync_p50_ms"] > 0
    assert {"python", "apsw", "sqlite", "penstock"} <= found["versions"].keys()
    assert {"subject": "claim of 100 at 5,000,000 rows", "reason": "--smoke"} in found["skipped"]


def test_every_row_is_complete(found: dict[str, Any]) -> None:
    for row in found["rows"]:
        assert row.keys() == ROW
        on_postgres = "PostgreSQL" in row["measure"] or "old snapshot" in row["measure"]
        assert (row["store"], row["durability"]) == ("postgres" if on_postgres else "sqlite", "full")
        assert row["value"] > 0 or row["measure"] in ALONE
    assert set(ALONE) <= {row["measure"] for row in found["rows"]}


def test_every_figure_stands_beside_its_reference(found: dict[str, Any]) -> None:
    for measure in COMPARED + ON_POSTGRES:
        ours, reference = (row for row in found["rows"] if row["measure"] == measure)
        assert ours["subject"] == "penstock"
        assert ours["reference"] == reference["value"]
        assert ours["ratio"] > 0
    assert [len(pair["ratios"]) for pair in found["rounds"]] == [1] * len(COMPARED + ON_POSTGRES)


def test_a_claim_is_compared_over_two_backlogs(found: dict[str, Any]) -> None:
    claims = {row["measure"]: row["ratio"] for row in found["rows"] if row["measure"].startswith("claim of 100 at")}
    assert claims["claim of 100 at 1,000 rows, p50"] == 1
    assert claims["claim of 100 at 2,000 rows, p50"] > 0


def test_a_claim_under_an_old_snapshot_is_compared_with_one_before_it(found: dict[str, Any]) -> None:
    (aged,) = (bar for bar in found["bars"] if "old snapshot" in bar["measure"])
    assert (aged["limit"], aged["at_most"]) == (2.0, True)
    (flowed,) = (row for row in found["rows"] if row["measure"] == "messages/s under an old snapshot")
    assert 0 < flowed["value"] <= flowed["reference"]


def test_nothing_is_left_but_the_figures_and_the_plot(folder: Path) -> None:
    assert sorted(path.name for path in folder.iterdir()) == ["store.json", "store.svg"]
    drawn = ElementTree.parse(folder / "store.svg").getroot()
    assert drawn.tag.endswith("svg")
