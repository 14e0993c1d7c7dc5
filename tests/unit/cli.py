"""Runs `penstock` as a user would, in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.cli.main import main
from tests.extent import patient

PROGRAM = Path(sys.executable).with_name("penstock")

SHOP = """
import penstock as ps

app = ps.App("shop")


class Sale(ps.Command, type="sale"):
    item: str


sales = app.queue("sales", Sale, retries=0)


@sales.handler
async def sell(sale: Sale) -> None:
    if sale.item == "cursed":
        raise ps.Gone("nobody sells that")
    app.db.write("insert into sold (item) values (:item)", sale)


async def send(*items: str, delay: float = 0.0) -> None:
    async with app, app.unit():
        for item in items:
            sales.send(Sale(item=item), delay=delay)
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """Everything that was said, however it was broken into lines."""
        return " ".join((self.out + self.err).split())

    @property
    def told(self) -> Any:
        """The one object on stdout."""
        assert self.out.count("\n") == 1, self.out
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, str]:
        """What went wrong, the last line of stderr."""
        told = json.loads(self.err.splitlines()[-1])
        assert list(told) == ["error"]
        error: dict[str, str] = told["error"]
        assert list(error) == ["code", "message", "hint"]
        return error


def here(word: str) -> str:
    """The database of `shop.py` by its name, which is an address where the test runs on a server."""
    return os.environ.get("PENSTOCK_DATABASE", word) if word == "shop.db" else word


class Terminal:
    """`penstock ...` in this process. The word shop.db means the shop's database, wherever it is."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> Said:
        self._capsys.readouterr()
        code = main([here(word) for word in arguments])
        return Said(code, *self._capsys.readouterr())


def environ(**more: str) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    return {**clean, "COLUMNS": "100", **more}


def kept_elsewhere() -> dict[str, str]:
    """Where the database of this test is, if not in its folder."""
    found = os.environ.get("PENSTOCK_DATABASE")
    return {} if found is None else {"PENSTOCK_DATABASE": found}


def penstock(*arguments: str, folder: Path, **more: str) -> Said:
    """`penstock ...` in a process of its own."""
    done = subprocess.run(
        [PROGRAM, *map(here, arguments)],
        cwd=folder,
        env=environ(**kept_elsewhere() | more),
        capture_output=True,
        text=True,
        check=False,
        timeout=patient(60),
    )
    return Said(done.returncode, done.stdout, done.stderr)


def shop_in(folder: Path, text: str = SHOP) -> Path:
    """An app in `shop.py` with a table for what was sold."""
    migrations = folder / "migrations"
    migrations.mkdir(exist_ok=True)
    (migrations / "0001_sold.sql").write_text("create table sold (item text);")
    file = folder / "shop.py"
    file.write_text(text)
    return file
