"""`penstock controllers`: what each does in the agreed shape, and levers that do what they say or say why not."""

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

@app.controller("enrichment", mode="zones")
class Enrichment(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return []


@app.controller("pages")
class Pages(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return []
"""


SLOW = """

service = app.pace("service.example", rate=(50, 100))


async def ask() -> None:
    async with app:
        for number in range(8):
            try:
                async with service.permit(str(number)):
                    if number > 5:
                        raise ps.Throttled("slow down", retry_after=3600)
            except ps.Throttled:
                pass
        service._saved_at = float("-inf")  # it would be saved half a minute later
        await service._remember(await app._opened(), service._pace)
"""


@pytest.fixture
def steered(empty_folder: Path) -> Path:
    shop_in(empty_folder, SHOP + MORE)
    asyncio.run(_opened(load("shop.py")))
    return empty_folder


async def _opened(app: Any) -> None:
    async with app:
        pass


def status(terminal: Terminal, name: str = "enrichment") -> dict[str, Any]:
    found: dict[str, Any] = terminal("controllers", "status", name, "shop.py", "--json").told
    return found


@pytest.mark.spec("A6-29")
def test_status_has_the_agreed_fields(steered: Path, terminal: Terminal) -> None:
    found = status(terminal)
    wanted = "running completions_per_minute success_rate success_rate_pct current_batch_size current_interval_ms"
    wanted += " in_cooldown cooldown_remaining_s last_tick_at projected_per_day mode rate_per_second ticks"
    assert set(wanted.split()) <= set(found)
    assert (found["mode"], found["running"], found["last_tick_at"]) == ("zones", True, None)
    assert "100.0 %" in terminal("controllers", "status", "enrichment", "shop.py").words


def test_all_controllers_are_listed(steered: Path, terminal: Terminal) -> None:
    found = terminal("controllers", "list", "shop.py", "--json").told["controllers"]
    assert [(each["name"], each["mode"]) for each in found] == [("enrichment", "zones"), ("pages", "pilot")]
    assert "pages" in terminal("controllers", "list", "shop.py").words


@pytest.mark.spec("A13-10")
def test_a_controller_is_stopped_started_and_reset(steered: Path, terminal: Terminal) -> None:
    assert terminal("controllers", "stop", "enrichment", "shop.py", "--json").told["running"] is False
    assert status(terminal)["running"] is False
    assert "stopped" in terminal("controllers", "list", "shop.py").words
    kept = terminal("controllers", "reset", "enrichment", "shop.py", "--keep-stopped", "--json").told
    assert kept["running"] is False
    started = terminal("controllers", "start", "enrichment", "shop.py", "--json").told
    assert (started["running"], started["next_tick_at"] is None) == (True, False)
    assert terminal("controllers", "reset", "enrichment", "shop.py").code == 0


@pytest.mark.spec("A6-34")
def test_a_controller_is_tuned_within_its_bounds_or_says_why_not(steered: Path, terminal: Terminal) -> None:
    tuned = terminal("controllers", "tune", "enrichment", "shop.py", "--batch-size", "500", "--json").told
    assert (tuned["current_batch_size"], status(terminal)["current_batch_size"]) == (50, 50)
    tuned = terminal("controllers", "tune", "pages", "shop.py", "--parallel", "3", "--json").told
    assert (tuned["current_batch_size"], status(terminal, "pages")["current_batch_size"]) == (3, 3)
    for wrong in (["--batch-size", "abc"], ["--rate", "2"], []):
        assert terminal("controllers", "tune", "enrichment", "shop.py", *wrong).code == 2
    assert terminal("controllers", "tune", "pages", "shop.py", "--rate", "-1").code == 2


def test_paces_are_listed_with_the_limit_that_was_found_and_refusals(empty_folder: Path, terminal: Terminal) -> None:
    shop_in(empty_folder, SHOP + SLOW)
    assert terminal("migrate", "shop.py").code == 0
    assert "No pace has been saved yet" in terminal("paces").words
    asyncio.run(load("shop.py").run(until_idle=True))
    module = sys.modules[load("shop.py").queues["sales"].handlers["sale"][0].function.__module__]

    asyncio.run(module.ask())

    told = {each["name"]: each for each in terminal("paces", "shop.db", "--json").told["paces"]}
    service = told["service.example"]
    assert (service["used_by"], service["mode"], service["requests"], service["refused"]) == ("handlers", "pilot", 7, 1)
    assert service["limit_per_second"] > 0
    assert service["closed_until"] is not None
    assert service["next_at"] >= service["closed_until"]
    assert "service.example" in terminal("paces", "shop.py").words
    assert "paused by refusals" in terminal("paces", "shop.py").words


@pytest.mark.parametrize("verb", ["status", "start", "stop", "reset"])
def test_a_controller_that_is_not_there_is_exit_code_4(steered: Path, terminal: Terminal, verb: str) -> None:
    said = terminal("controllers", verb, "enrichmentX", "shop.py", "--json")
    assert (said.code, said.out, said.error["code"]) == (4, "", "no_such_controller")


def test_a_database_alone_is_not_enough(steered: Path, terminal: Terminal) -> None:
    said = terminal("controllers", "list", "shop.db")
    assert (said.code, "Name the app" in said.words) == (2, True)
