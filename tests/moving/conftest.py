"""What tests of moving share: a database of each store with nothing in it, and a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.postgres import server
from tests.unit.cli import Terminal

NewDatabase = Callable[[str], str]


@pytest.fixture
def terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_DATABASE", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return Terminal(capsys)


@pytest.fixture
def new_database(tmp_path: Path) -> NewDatabase:
    """The address of a database that is not there yet, or has nothing in it."""
    numbers = iter(range(1, 100))

    def make(dialect: str) -> str:
        if dialect == "postgres":
            return server().new_database()
        return str(tmp_path / f"estate-{next(numbers)}.db")

    return make
