"""`penstock objects`: which there are and what each has saved, without touching any."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reference import load
from tests.unit.cli import SHOP, Terminal, shop_in

BOTH_STORES = True

MORE = """

class Counter(ps.Object):
    count: int = 0

    async def add(self, by: int) -> None:
        self.count += by
        self.set_alarm(after=3600)


class Agent(ps.Object):
    topic: str = "apps"

    async def wake(self) -> None: ...


counters = app.object(Counter)
agents = app.object(Agent)


async def use() -> None:
    async with app:
        await counters["main"].add(5)
        await counters["other"].add(1)
        await agents["main"].wake()
"""


@pytest.fixture
def filled(empty_folder: Path) -> Path:
    shop_in(empty_folder, SHOP + MORE)
    app = load("shop.py")
    module: Any = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]
    asyncio.run(module.use())
    return empty_folder


def test_objects_are_listed_all_or_of_one_class(filled: Path, terminal: Terminal) -> None:
    found = terminal("objects", "list", "--json").told["objects"]
    assert [(each["class"], each["name"]) for each in found] == [
        ("Agent", "main"),
        ("Counter", "main"),
        ("Counter", "other"),
    ]
    assert list(found[0]) == "class name owner epoch hint alarm_at alarm_lost saved_at bytes".split()
    assert (found[0]["alarm_at"], found[1]["alarm_at"] is None, found[1]["owner"]) == (None, False, None)
    for target in ((), ("shop.db",)):
        only = terminal("objects", "list", "Counter", *target, "--json").told["objects"]
        assert [each["name"] for each in only] == ["main", "other"]
    assert len(terminal("objects", "list", "shop.db", "--json").told["objects"]) == 3
    assert len(terminal("objects", "list", "--limit", "1", "--json").told["objects"]) == 1
    assert "Counter/other" in terminal("objects", "list").words
    assert "no such object" in terminal("objects", "list", "Nobody").words


def test_one_object_is_shown_with_its_state(filled: Path, terminal: Terminal) -> None:
    found = terminal("objects", "show", "Counter", "main", "--json").told
    assert (found["state"], found["alarm_lost"]) == ({"count": 5}, False)
    assert "count" in terminal("objects", "show", "Counter", "main", "shop.db").words
    said = terminal("objects", "show", "Counter", "nobody", "--json")
    assert (said.code, said.error["code"]) == (4, "not_found")
