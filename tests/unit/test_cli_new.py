"""`penstock new`: a project whose tests pass, that runs, and that overwrites nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli import PROGRAM, Terminal, environ

FILES = """
.gitignore
README.md
market.py
migrations/0001_offers.sql
penstock.toml
pytest.ini
source.py
tests/test_market.py
"""


def in_folder(folder: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, env=environ(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_project_has_its_files_and_its_tests_pass(empty_folder: Path, terminal: Terminal) -> None:
    said = terminal("new", "market")

    assert said.code == 0
    assert "penstock run market.py --reload" in said.out
    folder = empty_folder / "market"
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()) == FILES.split()
    assert not [path for path in folder.rglob("*") if path.is_file() and "__NAME__" in path.read_text("utf-8")]
    assert "3 passed" in in_folder(folder, sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")


def test_the_project_runs_and_passes_the_check(empty_folder: Path, terminal: Terminal) -> None:
    assert terminal("new", "market", "--json").told["folder"] == "market"
    folder = empty_folder / "market"

    in_folder(folder, str(PROGRAM), "migrate", "market.py")
    in_folder(folder, str(PROGRAM), "cron", "trigger", "collect", "market.py")
    ran = in_folder(folder, str(PROGRAM), "run", "market.py", "--until-idle")
    assert "warning" not in ran, "a project is written without anything to warn about"
    assert '"acked":5' in in_folder(folder, str(PROGRAM), "queues", "show", "pages", "market.py", "--json")
    in_folder(folder, str(PROGRAM), "check", "market.py")


def test_nothing_is_overwritten(empty_folder: Path, terminal: Terminal) -> None:
    (empty_folder / "market").mkdir()

    said = terminal("new", "market")

    assert said.code == 2
    assert "nothing was written" in said.words
    assert list((empty_folder / "market").iterdir()) == []


@pytest.mark.parametrize(
    "name", ["json", "class", "Market", "my-shop", "../up", "2fast", "penstock", "source", "x" * 41]
)
def test_a_name_that_is_no_module_of_its_own_is_refused(empty_folder: Path, terminal: Terminal, name: str) -> None:
    assert terminal("new", name).code == 2
    assert list(empty_folder.iterdir()) == []
