"""`penstock trace`: a tree for people, one object for programs, and a clear word where there is nothing to show."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.reference import load
from penstock.contracts.history import Entry
from penstock.model.ids import as_text, derived
from penstock.storage.sqlite.history import SqliteHistory, path_of
from tests.unit.cli import Terminal, shop_in

CHAIN = """
import penstock as ps

BOTH_STORES = True

app = ps.App("shop")


class Sale(ps.Event, type="sale"):
    item: str


class Sold(ps.Event, type="sold"):
    item: str


sales = app.queue("sales", Sale | Sold, retries=0)


@sales.handler(Sale)
async def sell(sale: Sale) -> None:
    sales.send(Sold(item=sale.item))
    sales.send(Sold(item="later"), delay=3_600)


@sales.handler(Sold)
async def sold(event: Sold) -> None:
    if event.item == "cursed":
        raise ps.Gone("nobody [bold]sells[/] that\\n\\x1b[31mtoken=hunter2hunter2 " + "x" * 500)


async def send(item: str) -> str:
    async with app, app.unit():
        return sales.send(Sale(item=item))
"""


@pytest.fixture
def chain(empty_folder: Path) -> str:
    """The id of a sale of something cursed, which a worker has seen to."""
    shop_in(empty_folder, CHAIN)
    return worked("cursed")


def worked(item: str) -> str:
    app: Any = load("shop.py")
    module: Any = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]
    id: str = asyncio.run(module.send(item))
    asyncio.run(app.run(until_idle=True))
    return id


@pytest.mark.spec("A12-04")
def test_programs_get_the_chain_in_the_agreed_shape(terminal: Terminal, chain: str) -> None:
    said = terminal("trace", chain, "shop.py", "--json")

    assert said.code == 0
    assert said.told["correlation_id"] == chain
    events = said.told["events"]
    assert [(each["depth"], each["name"], each["status"]) for each in events] == [
        (0, "sale", "acked"),
        (1, "sold", "delayed"),
        (1, "sold", "dead"),
    ]
    agreed = ["at", "service", "kind", "name", "id", "causation_id", "attempt", "status", "duration_ms"]
    assert all(list(each)[:9] == agreed for each in events)
    assert [each["causation_id"] for each in events] == [None, chain, chain]
    assert events[0]["service"] == "shop"
    assert "hunter2" not in said.out


@pytest.mark.spec("A12-04")
def test_people_get_a_tree(terminal: Terminal, chain: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    said = terminal("trace", chain, "--database", "shop.db")

    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == f"chain {chain}  3 messages: 1 acked, 1 delayed, 1 dead"
    assert f"└── sale  {chain}  sales" in lines[1]
    assert "shop  attempt 1  acked" in lines[2]
    assert any("├── sold" in line for line in lines)
    assert any("due in 59 min" in line for line in lines)
    assert "crash, may be missing" in lines[-1]


def test_hostile_text_moves_no_cursor_tells_no_secret_and_stays_in_its_line(
    terminal: Terminal, chain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    said = terminal("trace", chain)

    (line,) = (line for line in said.out.splitlines() if "attempt 1  dead" in line)
    assert "(permanent)  Gone: nobody [bold]sells[/] that ?[31mtoken=[redacted] xxx" in line
    assert "\x1b" not in said.out
    assert line.endswith("...")


def test_an_id_may_be_written_without_dashes(terminal: Terminal, chain: str) -> None:
    assert terminal("trace", chain.replace("-", ""), "--json").told["correlation_id"] == chain


def test_a_chain_is_found_by_the_text_that_its_caller_gave_it(terminal: Terminal, chain: str) -> None:
    app: Any = load("shop.py")
    module: Any = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]

    async def send() -> str:
        async with app, app.unit():
            id: str = module.sales.send(module.Sale(item="shoes"), correlation="brand-cycle-shoes-1")
            return id

    id = asyncio.run(send())
    asyncio.run(app.run(until_idle=True))
    told = terminal("trace", "brand-cycle-shoes-1", "--json").told

    assert [each["name"] for each in told["events"]] == ["sale", "sold", "sold"]
    assert told["events"][0]["id"] == id
    assert terminal("trace", id, "--json").told == told


def test_an_unknown_id_exits_with_not_found(terminal: Terminal, chain: str) -> None:
    said = terminal("trace", "019a8c3e-7f00-7abc-8def-0123456789ab", "--json")

    assert said.code == 4
    assert said.error["code"] == "not_found"
    assert "Nothing is known of 019a8c3e-7f00-7abc-8def-0123456789ab" in said.error["message"]
    assert "90 days" in said.error["hint"]


@pytest.mark.parametrize("text", ["brand-cycle-shoes", "12", "019a8c3e-7f00-7abc-8def-0123456789a", "['x']", "💥"])
def test_what_is_no_id_is_answered_with_the_form_of_an_id(terminal: Terminal, chain: str, text: str) -> None:
    said = terminal("trace", text)

    assert said.code == 2
    assert "An id has 32 hexadecimal digits, like 019a8c3e-7f00-7abc-8def-0123456789ab" in said.words


def test_without_a_database_it_says_where_to_look(terminal: Terminal) -> None:
    assert terminal("trace", "019a8c3e-7f00-7abc-8def-0123456789ab").code == 3


def test_a_damaged_history_is_left_as_it_is_and_what_waits_is_still_shown(
    terminal: Terminal, chain: str, empty_folder: Path
) -> None:
    path = path_of(empty_folder / "shop.db")
    path.write_bytes(b"scrambled" * 1_000)

    said = terminal("trace", chain, "--json")

    assert said.code == 0
    assert [each["status"] for each in said.told["events"]] == ["delayed", "dead"]
    assert said.told["notes"][0].startswith("Only waiting messages and dead letters are shown.")
    assert path.read_bytes().startswith(b"scrambled")
    assert terminal("trace", "019a8c3e-7f00-7abc-8def-0123456789ab").code == 4


def test_services_that_share_a_database_are_distinguished_and_lost_parents_are_named(
    terminal: Terminal, chain: str, empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    root, hour = b"r" * 16, 3_600_000_000
    lost = derived(root, "lost")
    entries = [
        Entry(hour, root, root, None, "message", "research", "q", "asked", "ui", 1, "acked", hour - 1_500, None),
        Entry(2 * hour, root, b"t" * 16, lost, "message", "social", "q", "posted", "writer", 1, "acked", hour, None),
        Entry(30 * hour, root, b"u" * 16, root, "tick", "writer", "q", "late", "writer", 1, "acked", 30 * hour, None),
    ]
    SqliteHistory(empty_folder / "shop.db").append(entries)

    said = terminal("trace", as_text(root))

    assert [service for service in ("research", "social", "writer") if f"  {service}  attempt 1" in said.out] == [
        "research",
        "social",
        "writer",
    ]
    assert f"caused by {as_text(lost)}, of another chain or no longer known" in said.out
    assert "1970-01-01 00:59:59.998  research" in said.out
    assert "1970-01-02 06:00:00.000  writer" in said.out
