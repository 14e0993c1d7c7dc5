"""What tests of the command line share: an empty folder to stand in, and a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.testing import TestApp
from tests.postgres import empty_database
from tests.unit.cli import Terminal, environ, shop_in
from tests.unit.market import SERVER


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The tests of a module that says BOTH_STORES run on each, but for those about what only one of them has."""
    if getattr(metafunc.module, "BOTH_STORES", False):
        only = metafunc.definition.get_closest_marker("only_on")
        metafunc.parametrize("kept_on", ["sqlite", "postgres"] if only is None else only.args, indirect=True)


@pytest.fixture(autouse=True)
def kept_on(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    found = str(getattr(request, "param", "sqlite"))
    address = empty_database() if found == "postgres" else None
    before = SERVER.set(address)
    if address is not None:
        monkeypatch.setattr(TestApp, "new_database", lambda: address)
    yield found
    SERVER.reset(before)


@pytest.fixture
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept_on: str) -> Iterator[Path]:
    """The current folder, with nothing in it and no setting of ours but where the database is, if that is on a server.
    What was imported from it is forgotten again."""
    monkeypatch.chdir(tmp_path)
    clean = environ()
    for name in [name for name in os.environ if name not in clean]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    if (named := SERVER.get()) is not None:
        monkeypatch.setenv("PENSTOCK_DATABASE", named)
    for name in ("shop", "inner", "market"):  # another test of this process may have imported one of the same name
        monkeypatch.delitem(sys.modules, name, raising=False)
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
