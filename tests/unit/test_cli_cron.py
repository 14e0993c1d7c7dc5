"""`penstock cron`: every task with its next and last run, and levers that do what they say or say why not."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reference import load
from tests.unit.cli import SHOP, Terminal, shop_in

BOTH_STORES = True

MORE = """

@app.cron("0 6 * * *", reason="charts change overnight")
async def crawl() -> None:
    app.db.write("insert into sold (item) values ('by cron')")


async def something_to_do() -> bool:
    return False


@app.cron("0 * * * *", reason="to see one rest", when=something_to_do)
async def idle() -> None: ...


@app.cron("0 * * * *", reason="to see one fail", zone="Europe/Berlin")
async def bad() -> None:
    raise OSError("away")
"""
SHAPE = "name expression zone next_at fired paused reason last_at last_status last_error last_day".split()


@pytest.fixture
def clocked(empty_folder: Path) -> Path:
    shop_in(empty_folder, SHOP + MORE)
    asyncio.run(_opened(load("shop.py")))
    return empty_folder


async def _opened(app: Any) -> None:
    async with app:
        pass


def listed(terminal: Terminal, *target: str) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in terminal("cron", "list", *target, "--json").told["crons"]}


def test_every_task_is_listed_in_the_agreed_shape(clocked: Path, terminal: Terminal) -> None:
    found = listed(terminal)
    assert {name: list(each) for name, each in found.items()} == {"bad": SHAPE, "crawl": SHAPE, "idle": SHAPE}
    assert found["crawl"]["expression"] == "0 6 * * *"
    assert found["crawl"]["next_at"].endswith("T06:00:00.000Z")
    assert (found["crawl"]["reason"], found["bad"]["zone"]) == ("", "Europe/Berlin")
    assert listed(terminal, "shop.py")["crawl"]["reason"] == "charts change overnight"
    assert "0 6 * * *" in terminal("cron", "list").words
    assert "0 * * * * Europe/Berlin" in terminal("cron", "list").words


@pytest.mark.spec("A13-10")
def test_a_task_that_is_triggered_runs_and_its_end_is_shown(clocked: Path, terminal: Terminal) -> None:
    for name in ("crawl", "bad"):
        assert terminal("cron", "trigger", name, "--json").told == {"cron": name, "triggered": True}
    asyncio.run(load("shop.py").run(until_idle=True))
    found = listed(terminal)
    assert found["crawl"]["last_status"] == "done"
    assert (found["bad"]["last_status"], found["bad"]["last_error"]) == ("failed", "OSError: away at shop.py:42")
    assert "OSError: away" in terminal("cron", "list").words


@pytest.mark.spec("A4-09")
def test_runs_that_found_nothing_to_do_are_counted_beside_the_others(clocked: Path, terminal: Terminal) -> None:
    for name in ("crawl", "idle", "idle"):
        terminal("cron", "trigger", name)
        asyncio.run(load("shop.py").run(until_idle=True))

    found = listed(terminal)
    assert {name: each["last_day"] for name, each in found.items()} == {
        "bad": {},
        "crawl": {"done": 1},
        "idle": {"idle": 2},
    }
    assert "2 idle" in terminal("cron", "list").words
    assert {name: each["fired"] for name, each in found.items()} == {"bad": 0, "crawl": 1, "idle": 2}


def test_a_task_rests_and_goes_on(clocked: Path, terminal: Terminal) -> None:
    assert terminal("cron", "pause", "crawl", "--json").told == {"cron": "crawl", "paused": True}
    assert (listed(terminal)["crawl"]["paused"], listed(terminal)["crawl"]["next_at"]) == (True, None)
    assert "paused" in terminal("cron", "list").words
    assert "Resumed cron task crawl" in terminal("cron", "resume", "crawl", "shop.py").words
    assert listed(terminal)["crawl"]["next_at"].endswith("T06:00:00.000Z")


@pytest.mark.parametrize("verb", ["trigger", "pause", "resume"])
def test_a_task_that_is_not_there_is_exit_code_4(clocked: Path, terminal: Terminal, verb: str) -> None:
    said = terminal("cron", verb, "crowl", "shop.py", "--json")
    assert (said.code, said.out, said.error["code"]) == (4, "", "no_such_schedule")
    assert "crawl" in said.error["message"]


@pytest.mark.only_on("sqlite")
def test_without_a_database_or_tasks_it_says_so(empty_folder: Path, terminal: Terminal) -> None:
    assert terminal("cron", "list").code == 3
    shop_in(empty_folder)
    asyncio.run(_opened(load("shop.py")))
    assert "No cron task" in terminal("cron", "list").words
    assert terminal("cron", "--json").told == {"commands": ["list", "trigger", "pause", "resume"]}
