"""`penstock cost`: how near each ceiling is, and what objects were asked, took and keep."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reference import load
from tests.unit.cli import SHOP, Terminal, shop_in

BOTH_STORES = True

MORE = """

class Counter(ps.Object):
    count: int = 0

    async def add(self) -> None:
        self.count += 1


counters = app.object(Counter)


@app.cron("0 * * * *", reason="hourly", ceiling=ps.Ceiling(rows_written=2))
async def crawl() -> None:
    app.db.write("insert into sold (item) values ('by cron')")


@app.cron("0 * * * *", reason="hourly")
async def count() -> None:
    await counters["main"].add()
"""
NOTHING = """

@app.cron("0 * * * *", reason="hourly")
async def nothing() -> None: ...
"""


@pytest.fixture
def bounded(empty_folder: Path) -> Path:
    (empty_folder / "penstock.toml").write_text("[ceiling]\nusd = 5\nobject_seconds = 3600\n")
    shop_in(empty_folder, SHOP + MORE)
    return empty_folder


def worked(*tasks: str) -> None:
    app: Any = load("shop.py")

    async def work() -> None:
        for task in tasks:
            async with app:
                await app.crons.trigger(task)
            await app.run(until_idle=True)

    asyncio.run(work())


@pytest.mark.spec("A4-12", "A4-13")
def test_ceilings_are_shown_with_how_much_of_each_is_used(terminal: Terminal, bounded: Path) -> None:
    worked("crawl")

    system = [
        {"task": None, "unit": "object_seconds", "most": 3600.0, "used": 0.0, "reached": False},
        {"task": None, "unit": "usd", "most": 5.0, "used": pytest.approx(1e-8, abs=1e-6), "reached": False},
    ]
    crawl = {"task": "crawl", "unit": "rows_written", "most": 2, "used": 1.0, "reached": False}
    assert terminal("cost", "shop.py", "--json").told["ceilings"] == [*system, crawl]
    assert terminal("cost", "shop.db", "--json").told["ceilings"] == system

    assert "ceiling" not in terminal("status", "shop.py").words

    worked("crawl")

    assert terminal("cost", "shop.py", "--json").told["ceilings"][-1] == {**crawl, "used": 2.0, "reached": True}
    assert "crawl 2 of 2 rows written reached" in terminal("cost", "shop.py").words
    assert "ceiling reached by crawl: 2 of 2 rows written." in terminal("status", "shop.py").words
    assert (
        terminal("status", "shop.py", "--json").told["ceilings"]
        == terminal("cost", "shop.py", "--json").told["ceilings"]
    )


@pytest.mark.spec("A5-18")
def test_objects_are_shown_by_class_with_what_they_keep(terminal: Terminal, bounded: Path) -> None:
    worked("count", "count", "count")

    [told] = terminal("cost", "shop.py", "--json").told["objects"]
    assert list(told) == ["class", "requests", "seconds", "saves", "count", "bytes"]
    assert (told["class"], told["requests"], told["saves"], told["count"]) == ("Counter", 3, 3, 1)
    assert told["bytes"] == len('{"count":3}')
    assert 0 <= told["seconds"] < 60
    assert "Counter 3" in terminal("cost", "shop.py").words


def test_where_nothing_has_a_ceiling_there_is_none(terminal: Terminal, empty_folder: Path) -> None:
    shop_in(empty_folder, SHOP + NOTHING)
    worked("nothing")

    told = terminal("cost", "shop.py", "--json").told
    assert (told["ceilings"], told["objects"]) == ([], [])


PAYING = """

gateway = app.gateway(budgets=ps.Budgets(run=0.5, day=1.0, month=20.0))


@app.cron("0 * * * *", reason="hourly")
async def pay() -> None:
    async with gateway.paid(provider="brave", operation="web_search", at_most=0.01, run="r1") as call:
        call.settle(units=1, usd=0.005)
    async with gateway.paid(provider="openai", operation="chat", at_most=0.02):
        pass
"""


@pytest.mark.spec("F-14")
def test_what_paid_calls_cost_stands_beside_the_rest_with_what_is_left(terminal: Terminal, empty_folder: Path) -> None:
    shop_in(empty_folder, SHOP + PAYING)
    worked("pay", "pay")

    told = terminal("cost", "shop.py", "--json").told
    assert "rows_read" in told["usage"]
    api = told["api"]
    assert (api["usd"], api["reserved_usd"], api["calls"]) == (0.05, 0.0, 4)
    assert [tuple(kind.values()) for kind in api["kinds"]] == [
        ("shop", "openai", "chat", 2, 0, 0.04, 0.04),
        ("shop", "brave", "web_search", 2, 2, 0.01, 0.0),
    ]
    left = {budget["budget"]: (budget["most"], budget["used"], budget["left"]) for budget in api["budgets"]}
    assert left == {"run": (0.5, 0.0, 0.5), "day": (1.0, 0.05, 0.95), "month": (20.0, 0.05, 19.95)}
    assert terminal("cost", "shop.db", "--json").told["api"] == {**api, "budgets": []}
    shown = terminal("cost", "shop.py").words
    assert "Paid calls $0.05" in shown
    assert "openai chat 2 0 $0.04 $0.04 at most" in shown
    assert "shop day $0.05 $1.00 $0.95" in shown


def test_where_nothing_is_paid_for_nothing_is_said_about_it(terminal: Terminal, empty_folder: Path) -> None:
    shop_in(empty_folder, SHOP + NOTHING)
    worked("nothing")
    assert terminal("cost", "shop.py", "--json").told["api"]["kinds"] == []
    assert "Paid calls" not in terminal("cost", "shop.py").words
