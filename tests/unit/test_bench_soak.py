"""The soak runs from end to end, survives the kill of its worker, and compares its end with its begin."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.report import Report
from bench.soak import Sample, judge

PROGRAM = Path(__file__).resolve().parents[2] / "bench/soak.py"


def samples(*, memory_mb: float = 100.0) -> list[Sample]:
    """Ten minutes at a hundred messages a second, at whose end the processes need `memory_mb`."""
    return [
        Sample(
            seconds=60.0 * minute,
            acked=6_000 * minute,
            cpu_seconds=3.0 * minute,
            send_ms=1.0,
            oldest_seconds=0.0,
            memory_mb=memory_mb if minute > 7 else 100.0,
            files=30,
            disk_mb=50.0 + minute,
        )
        for minute in range(10)
    ]


def judged(found: list[Sample]) -> dict[str, bool | None]:
    report = Report("soak", seed=0)
    judge(report, found, kills=0)
    return {bar.measure.partition(":")[0]: bar.passed for bar in report.bars}


def test_constant_work_has_not_drifted() -> None:
    assert judged(samples()) == {"processor time a message": True, "memory": True, "open files": True}


def test_memory_that_grows_by_a_fifth_is_a_drift() -> None:
    assert judged(samples(memory_mb=120.0))["memory"] is False


@pytest.mark.slow
def test_a_short_soak_handles_messages_before_and_after_a_kill(tmp_path: Path) -> None:
    options = ["--hours", "0.03", "--every", "10", "--kills", "1", "--out", str(tmp_path)]
    command = [sys.executable, str(PROGRAM), *options]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "killed worker process" in ended.stdout
    rows = {row["measure"]: row["value"] for row in json.loads((tmp_path / "soak.json").read_text())["rows"]}
    assert rows["messages handled, last fifth beside the second"] > 0
