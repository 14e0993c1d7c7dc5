"""What tests of the command line share: an empty folder to stand in, and a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.cli import Terminal, environ, shop_in


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with nothing in it and no setting of ours. What was imported from it is forgotten again."""
    monkeypatch.chdir(tmp_path)
    clean = environ()
    for name in [name for name in os.environ if name not in clean]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    path, modules = list(sys.path), set(sys.modules)
    yield tmp_path
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


@pytest.fixture
def shop(empty_folder: Path) -> Path:
    """The current folder with an app in `shop.py`, and no database yet."""
    shop_in(empty_folder)
    return empty_folder


@pytest.fixture
def terminal(empty_folder: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)
