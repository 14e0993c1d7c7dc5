"""`penstock rentals` as a new user meets it."""

from __future__ import annotations

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
    assert "No handler takes dead letters" not in penstock(tmp_path, "run", "rentals", "--until-idle")
    assert " ".join(penstock(tmp_path, "rentals", "sources").split()) == NO_SOURCE


def test_a_start_without_sources_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.sources, "sources", {})
    sending.warn_without_sources.cache_clear()
    with caplog.at_level(logging.WARNING, "penstock.rentals"):
        sending.warn_without_sources()
        sending.warn_without_sources()
    assert caplog.messages == [NO_SOURCE]
