"""`penstock sources`, `why` and `status` of an app whose source blocks: what an operator sees without any code of alerts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reference import load
from tests.unit.cli import Terminal, here

BOTH_STORES = True
CODE = """
from collections.abc import AsyncIterator

import penstock as ps
from penstock.connect import Blocked, Http, Page, Record

app = ps.App("shop", database={database!r})


class Offers(ps.Connector):
    name = "offers"
    async def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
        yield Page([Record(str(number), {{"price": number}}) for number in range(3)], "page 1")
        raise Blocked("https://shop.example/ answered with a challenge.")


app.connector(Offers())
"""


@pytest.fixture
def shelf(empty_folder: Path) -> Path:
    """The database of an app whose source blocked it behind the first page."""
    (empty_folder / "offers.py").write_text(CODE.format(database=here("shop.db")))

    async def run(app: Any) -> None:
        async with app:
            await app.sources.run()

    asyncio.run(run(load("offers.py")))
    return empty_folder


def test_a_blocked_source_is_listed_explained_and_an_open_alert_of_the_database(
    shelf: Path, terminal: Terminal
) -> None:
    [listed] = terminal("sources", "list", "shop.db", "--json").told["sources"]
    assert (listed["state"], listed["alerts"], listed["cursor"]) == ("blocked", ["blocked"], "page 1")
    assert listed["next_at"] > listed["last_run_at"]
    assert listed["last_success_at"] is None
    shown = terminal("sources", "show", "offers", "shop.db", "--json").told
    assert [(run["verdict"], run["inserted"]) for run in shown["runs"]] == [("blocked", 3)]
    why = terminal("why", "offers", "shop.db")
    assert "It rests until" in why.words
    assert "answered with a challenge" in why.words
    [alert] = terminal("status", "shop.db", "--json").told["alerts"]
    assert (alert["name"], alert["title"]) == ("source offers: blocked", "offers blocks this program")
    assert "offers blocks this program" in terminal("status", "shop.db").words


def test_an_operator_disables_enables_runs_and_resets_a_source(shelf: Path, terminal: Terminal) -> None:
    def state() -> tuple[str, str | None, str]:
        row = terminal("sources", "show", "offers", "shop.db", "--json").told
        return row["state"], row["cursor"], row["reason"]

    assert terminal("sources", "disable", "offers", "shop.db").code == 0
    assert state()[0] == "disabled"
    assert "penstock sources enable offers" in state()[2]
    terminal("sources", "enable", "offers", "shop.db")
    assert "It is due" in state()[2], "its block is forgotten"
    terminal("sources", "run", "offers", "offers.py")
    terminal("sources", "reset", "offers", "shop.db")
    assert state()[1] is None
    verbs = [row["verb"] for row in terminal("audit", "shop.db", "--json").told["audit"]]
    assert sorted(verbs) == ["sources disable", "sources enable", "sources reset", "sources run"]


@pytest.mark.parametrize("verb", ["show", "run", "enable", "disable", "reset"])
def test_a_source_that_is_not_there_is_exit_code_4_with_a_near_name(shelf: Path, terminal: Terminal, verb: str) -> None:
    answered = terminal("sources", verb, "offer", "shop.db")
    assert answered.code == 4
    assert "offers" in answered.err


def test_a_database_without_sources_and_a_name_that_is_none(shop: Path, terminal: Terminal) -> None:
    async def opened(app: Any) -> None:
        async with app:
            pass

    asyncio.run(opened(load("shop.py")))
    assert "No source has been declared yet." in terminal("sources", "list", "shop.db").words
    assert terminal("why", "offers", "shop.db").code == 2
