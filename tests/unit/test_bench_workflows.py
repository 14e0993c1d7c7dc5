"""The benchmarks of workflows: their reports and their judgements. No figure is judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.peers.dbos_workflows import SETTINGS, Setting
from bench.place import in_file
from bench.report import Report
from bench.sleeping import Slept, fill
from bench.workflows import FULL, Plan
from bench.workflows_raw import seconds
from bench.workflows_report import HEAD, Shown, Swept, Taken, best, build
from bench.workflows_shape import DBOS, PENSTOCK, RAW, Point, Shape

ROOT = Path(__file__).resolve().parents[2]
ROW = {"subject", "store", "measure", "value", "unit", "reference", "ratio", "durability"}
JUDGED = Point("sqlite", 5, 100)
GOOD_DISK_MS, BAD_DISK_MS = 0.2, 4.0


def ended(name: str, folder: Path, *chosen: str) -> dict[str, Any]:
    """What a benchmark writes, run without the peers: they are not installed for a test."""
    command = [sys.executable, str(ROOT / "bench" / f"{name}.py"), *chosen, "--out", str(folder)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(path.name for path in folder.iterdir()) == [f"{name}.json", f"{name}.svg"]
    assert ElementTree.parse(folder / f"{name}.svg").getroot().tag.endswith("svg")
    report: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return report


# -- from end to end ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_penstock_and_the_raw_bound_take_turns_on_both_stores(tmp_path: Path) -> None:
    chosen = ("--smoke", "--only", "penstock", "--steps", "2", "--at-once", "3", "--seed", "7")
    found = ended("workflows", tmp_path, *chosen)
    assert (found["name"], found["seed"], found["skipped"]) == (
        "workflows",
        7,
        [{"subject": "dbos", "reason": "--only"}],
    )
    assert found["machine"]["fdatasync_p50_ms"] > 0
    assert all(row.keys() == ROW and row["value"] > 0 for row in found["rows"])
    assert [(row["subject"], row["store"], row["measure"], row["unit"]) for row in found["rows"]] == [
        (subject, store, "2 steps, 3 at once", unit)
        for subject in (RAW, PENSTOCK)
        for store in ("sqlite", "postgres")
        for unit in ("workflows/s", "steps/s")
    ]
    ours = [row for row in found["rows"] if row["subject"] == PENSTOCK]
    assert [row["durability"] for row in ours[::2]] == ["full", "fsync=on, synchronous_commit=on"]
    assert ours[1]["value"] == pytest.approx(2 * ours[0]["value"], rel=1e-5)
    assert all(row["reference"] > 0 and row["ratio"] > 0 for row in ours)
    assert found["bars"] == []


@pytest.mark.slow
def test_runs_sleep_in_a_process_of_their_own_whose_peak_memory_is_reported(tmp_path: Path) -> None:
    found = ended("sleeping", tmp_path, "--runs", "10")
    (row,) = found["rows"]
    assert (row["measure"], row["unit"], row["ratio"]) == ("peak memory, 10 runs that sleep", "MB", 1.0)
    assert row["value"] > 1
    assert found["bars"] == []


@pytest.mark.parametrize("at_once", [1, 7], ids=["alone", "together"])
def test_the_raw_bound_saves_every_step_of_every_run(tmp_path: Path, at_once: int) -> None:
    place = in_file(tmp_path / "raw.db")
    assert seconds(place, Shape(3, at_once, 10)) > 0
    assert place.row("select count(*), min(position), max(position) from steps") == (30, 0, 2)
    assert place.row("select count(*) from runs where ended_at >= created_at") == (10,)


# -- the judgements -------------------------------------------------------------------------------------------------


def taken(penstock: float, dbos: float | None, *, point: Point = JUDGED, disk: float = GOOD_DISK_MS) -> Taken:
    rates = {RAW: 20_000.0, PENSTOCK: penstock} | ({} if dbos is None else {DBOS: dbos})
    return Taken(point, rates, disk)


def judged(*rounds: Taken, swept: tuple[Swept, ...] = ()) -> Report:
    report = Report("workflows", 1)
    build(report, rounds, swept, best_ms=GOOD_DISK_MS)
    return report


def test_a_hundred_runs_of_five_steps_are_compared_with_those_of_dbos_in_the_same_round() -> None:
    report = judged(taken(3_000, 50), taken(4_500, 100), taken(5_500, 100))
    (bar,) = report.bars
    assert (bar.value, bar.limit, bar.passed) == (55.0, 50.0, True)
    assert "sqlite" in str(bar)


def test_other_numbers_of_steps_and_runs_are_shown_without_a_bar() -> None:
    others = (Point("sqlite", 1, 100), Point("sqlite", 5, 1), Point("postgres", 5, 1_000))
    assert judged(*(taken(3_000, 50, point=point) for point in others)).bars == []


def test_a_comparison_on_a_slow_disk_proves_nothing() -> None:
    report = judged(taken(3_000, 50, disk=BAD_DISK_MS))
    assert report.bars[0].passed is None
    assert Shown(report, [JUDGED]).lines()[0][-1] == "slow disk"


def test_the_table_has_each_point_beside_the_raw_bound_and_dbos() -> None:
    report = judged(taken(3_000, 50), taken(4_000, 50), taken(5_000, 50, disk=BAD_DISK_MS))
    (line,) = Shown(report, [JUDGED]).lines()
    assert len(line) == len(HEAD)
    assert line == (
        *("5 steps, 100 at once", "sqlite", "20,000", "50", "3,500", "17,500", "0.175", "70.0"),
        "60.0 80.0 (100.0)",
        "",
    )


def test_without_dbos_there_is_nothing_to_judge() -> None:
    report = judged(taken(3_000, None))
    assert report.bars == []
    assert Shown(report, [JUDGED]).lines()[0][3] == "-"


def test_the_plot_shows_the_bar_at_fifty_times_dbos() -> None:
    (panel,) = Shown(judged(taken(3_000, 50)), [JUDGED]).panels()
    assert [(line.label, line.limit) for line in panel.lines] == [
        ("penstock, 100 at once", 2_500),
        ("dbos, 100 at once", None),
        ("raw bound, 100 at once", None),
    ]


def test_ten_times_the_runs_may_need_a_little_more_memory_and_no_more() -> None:
    report = Report("sleeping", 0)
    fill(report, [Slept(10, 50.0, 60.0, 1.0, 0.1, 0.1), Slept(100, 50.0, 110.0, 1.0, 0.1, 0.1)])
    assert [(row.value, row.reference) for row in report.rows] == [(60.0, 60.0), (110.0, 60.0), (50.0, None)]
    assert (report.bars[0].value, report.bars[0].limit, report.bars[0].passed) == (50.0, 40.0, False)


# -- the peer -------------------------------------------------------------------------------------------------------


def test_the_best_try_of_each_setting_decides_which_takes_part() -> None:
    plain, queued = Setting("called"), Setting("queued", pool=1, wal=True)
    swept = [
        Swept("sqlite", 100, plain, 40.0),
        Swept("sqlite", 100, queued, 60.0),
        Swept("sqlite", 100, plain, 70.0),
        Swept("sqlite", 1, queued, 90.0),
    ]
    assert best(swept, "sqlite", 100) == [plain, queued]
    assert best(swept, "postgres", 100) == []
    assert str(queued) == "queued, pool of 1, WAL"


def test_the_sweep_has_plain_and_async_workflows_and_the_queue_on_each_store() -> None:
    for settings in SETTINGS.values():
        assert {"called", "awaited", "started", "queued"} <= {setting.how for setting in settings}
        assert len(set(settings)) == len(settings)
    assert {setting.wal for setting in SETTINGS["sqlite"]} == {False, True}


@pytest.mark.parametrize("subject", [RAW, PENSTOCK, DBOS])
@pytest.mark.parametrize("at_once", [1, 100, 1_000])
def test_there_are_never_fewer_runs_than_are_to_be_under_way(subject: str, at_once: int) -> None:
    shape = FULL.shape(subject, Point("sqlite", 5, at_once))
    assert shape.runs >= at_once == shape.at_once


def test_a_plan_gives_each_contestant_runs_of_its_own() -> None:
    plan = Plan({DBOS: 7}, {DBOS: 2.5}, rounds=1, tries=1, again_max=0)
    assert plan.shape(DBOS, Point("sqlite", 1, 1)).runs == 7
    assert plan.shape(DBOS, Point("sqlite", 1, 3)).runs == 8
