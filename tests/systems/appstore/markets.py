"""A database with a small market in it, for tests that read one, and a terminal to read it from."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from penstock_systems.appstore import app as shared
from tests.postgres import empty_database
from tests.systems.appstore import market_rows
from tests.unit.cli import Terminal


def filled(address: str) -> None:
    """Makes the tables there and fills them."""

    async def fill() -> None:
        shared.app.database = address
        async with shared.app:
            await market_rows.fill(shared.app)

    before = shared.app.database
    try:
        asyncio.run(fill())
    finally:
        shared.app.database = before


@pytest.fixture
def market(kept_on: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of the market's database. It is also the one that commands take if they are told nothing."""
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)
    address = empty_database() if kept_on == "postgres" else str(tmp_path / "pipeline-db.db")
    filled(address)
    if kept_on == "postgres":
        monkeypatch.setenv("PENSTOCK_DATABASE", address)
    return address


@pytest.fixture
def terminal(market: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("COLUMNS", "80")
    return Terminal(capsys)
