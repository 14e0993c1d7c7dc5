"""`penstock rentals` as a new user meets it."""

from __future__ import annotations

import csv
import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from penstock_systems.rentals import sending
from penstock_systems.rentals.app import app
from penstock_systems.rentals.settings import NO_SOURCE


def penstock(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "penstock", *words]
    done = subprocess.run(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
    return done.stdout


def test_the_sources_of_a_start_without_settings_are_answered_with_the_way_out(tmp_path: Path) -> None:
    started = penstock(tmp_path, "run", "rentals", "--until-idle")
    assert "No handler takes dead letters" not in started
    assert "no message is due" in started, "without sources too"
    assert " ".join(penstock(tmp_path, "rentals", "sources").split()) == NO_SOURCE


def test_what_a_source_brought_is_listed_shown_reported_and_exported(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text('[systems.rentals.sources.stockholm]\nevery = "2h"\n')
    collect = ("run", "rentals", "--standins", "--until-idle")
    penstock(tmp_path, *collect)
    assert "Made stockholm due" in penstock(tmp_path, "rentals", "run", "stockholm")
    penstock(tmp_path, *collect)
    assert " ok " in penstock(tmp_path, "rentals", "sources")
    found = json.loads(penstock(tmp_path, "rentals", "find", "--rooms", "2", "--limit", "500", "--json"))["listings"]
    assert len(found) > 20
    assert {each["rooms"] for each in found} == {2.0}
    home = found[0]["home_id"]
    assert f"Home {home}: active" in penstock(tmp_path, "rentals", "homes", home)
    assert "Wrote rentals.html" in penstock(tmp_path, "rentals", "report", "rentals.html")
    assert "<svg" in (tmp_path / "rentals.html").read_text("utf-8")
    penstock(tmp_path, "rentals", "export", "all.csv")
    penstock(tmp_path, "rentals", "export", "all.geojson")
    rows = list(csv.DictReader(io.StringIO((tmp_path / "all.csv").read_text("utf-8"))))
    places = json.loads((tmp_path / "all.geojson").read_text("utf-8"))["features"]
    assert {row["id"] for row in rows} == {each["id"] for each in places} > {each["id"] for each in found}
    assert "no source 'olx'" in penstock(tmp_path, "rentals", "run", "olx")
    assert "none of the endings .csv" in penstock(tmp_path, "rentals", "export", "all.txt")


def test_a_start_without_sources_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.sources, "sources", {})
    sending.warn_without_sources.cache_clear()
    with caplog.at_level(logging.WARNING, "penstock.rentals"):
        sending.warn_without_sources()
        sending.warn_without_sources()
    assert caplog.messages == [NO_SOURCE]
