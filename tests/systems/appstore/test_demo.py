"""The demonstration, small: the same seed gives the same bytes, and one that is killed goes on and lists the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock_systems.appstore.demo.choice import chosen
from tests.extent import patient, sampled

SMALL = {"APPS": "100", "DAYS": "0.52", "COLUMNS": "100", "PYTHONHASHSEED": "random"}
COMMAND = [sys.executable, "-m", "penstock_systems.appstore.demo"]


def started(folder: Path, **more: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PENSTOCK_DATABASE"}
    return subprocess.Popen(
        COMMAND, cwd=folder, env=environment | SMALL | more, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def finished(process: subprocess.Popen[str]) -> str:
    said, _ = process.communicate(timeout=patient(300))
    assert process.returncode == 0, said
    return said


def report(folder: Path, name: str = "report.json") -> bytes:
    return (folder / "build" / "demo" / name).read_bytes()


def listed(folder: Path) -> list[str]:
    return [each["name"] for each in json.loads(report(folder))["opportunities"]]


@pytest.mark.only_on("sqlite")
@pytest.mark.slow
def test_the_same_seed_gives_the_same_report(tmp_path: Path) -> None:
    once, again = tmp_path / "once", tmp_path / "again"
    for process in [started(once), started(again)]:
        finished(process)

    assert report(once) == report(again)
    assert report(once, "report.html") == report(again, "report.html")


@pytest.mark.only_on("sqlite")
@pytest.mark.spec("B6-02")
def test_a_run_that_was_killed_goes_on_and_lists_the_same(tmp_path: Path) -> None:
    once, killed = tmp_path / "once", tmp_path / "killed"
    unharmed, victim = started(once), started(killed)
    at = killed / "build" / "demo" / "run.json"
    until = time.monotonic() + patient(200)
    while not (at.exists() and "2026-01-01T08" in at.read_text()):
        assert victim.poll() is None, victim.communicate()[0]
        assert time.monotonic() < until, "it never came to eight o'clock"
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    victim.communicate()

    said = finished(unharmed)
    resumed = finished(started(killed))

    assert "market opportunities" in said
    assert "of an interrupted run" in resumed
    assert listed(once)
    assert listed(killed) == listed(once)


@pytest.mark.only_on("sqlite")
def test_what_cannot_be_demonstrated_ends_before_it_begins(tmp_path: Path) -> None:
    process = started(tmp_path, APPS="abc")
    said, _ = process.communicate(timeout=patient(60))

    assert process.returncode == 1
    assert "APPS='abc'" in said
    assert "Traceback" not in said
    assert not (tmp_path / "build").exists()


@pytest.mark.only_on("sqlite")
@sampled("name, value", [("APPS", "0"), ("DAYS", "-1"), ("SEED", "x"), ("WITHOUT", "nonsense")], every=4)
def test_what_cannot_be_demonstrated_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit, match=f"demo: .*{value}"):
        chosen()


@pytest.mark.only_on("sqlite")
def test_a_library_that_is_missing_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "scipy.py").write_text("raise ImportError('there is none')")
    process = started(tmp_path, PYTHONPATH=str(tmp_path))
    said, _ = process.communicate(timeout=patient(60))

    assert process.returncode == 1
    assert said == "demo: Markets cannot be computed without scipy: pip install 'penstock[cluster]'.\n"
    assert not (tmp_path / "build").exists()
