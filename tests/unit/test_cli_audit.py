"""`penstock audit`: every administrative command leaves one entry, with its user, and shows what it changed."""

from __future__ import annotations

import asyncio
import getpass
import socket
from pathlib import Path
from typing import Any

import click
import pytest

from penstock.cli.main import COMMANDS, penstock
from penstock.cli.reference import load
from tests.unit.cli import SHOP, Terminal, shop_in
from tests.unit.test_cli_queues import worked

BOTH_STORES = True

MORE = """

@app.controller("pages")
class Pages(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return []


@app.cron("0 4 * * *", reason="test")
async def sweep() -> None:
    pass


@app.workflow
async def patient(run: ps.Run) -> None:
    await run.wait_for("anything")


class Shelf(ps.Connector):
    name = "shelf"

    async def fetch(self, cursor, http):
        yield ps.connect.Page([], "1")


app.connector(Shelf())
"""


@pytest.fixture
def full(empty_folder: Path) -> Path:
    shop_in(empty_folder, SHOP + MORE)
    asyncio.run(_opened(load("shop.py")))
    return empty_folder


async def _opened(app: Any) -> None:
    async with app:
        pass


def audit(terminal: Terminal, *more: str, database: str = "shop.db") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = terminal("audit", database, *more, "--json").told["audit"]
    return found


COMMANDS_RUN = """
queues pause sales shop.db
queues resume sales shop.db
queues tune sales shop.db --parallel 3
queues send sales {"item":"book"} shop.py
queues purge sales shop.db --yes
cron pause sweep shop.db
cron resume sweep shop.db
cron trigger sweep shop.db
sources run shelf shop.py
sources disable shelf shop.db
sources enable shelf shop.db
sources reset shelf shop.db
controllers stop pages shop.py
controllers start pages shop.py
controllers tune pages shop.py --rate 2.5
controllers reset pages shop.py
workflows start patient shop.py --id one
workflows signal one other shop.py
workflows pause one shop.py
workflows resume one shop.py
workflows restart one shop.py
workflows terminate one shop.py
"""


def test_every_administrative_command_leaves_one_entry(full: Path, terminal: Terminal) -> None:
    for line in COMMANDS_RUN.split("\n")[1:-1]:
        said = terminal(*line.split())
        assert said.code == 0, (line, said)

    entries = audit(terminal)[::-1]
    assert [each["verb"] for each in entries] == [" ".join(line.split()[:2]) for line in COMMANDS_RUN.split("\n")[1:-1]]
    assert {each["actor"] for each in entries} == {f"{getpass.getuser()}@{socket.gethostname()}"}
    assert {each["origin"] for each in entries} == {"cli"}
    by_verb = {each["verb"]: each for each in entries}
    assert (by_verb["queues pause"]["before"], by_verb["queues pause"]["after"]) == ({"paused": 0}, {"paused": 1})
    assert by_verb["queues tune"]["after"] == {"parallel_tuned": 3}
    assert len(by_verb["queues send"]["after"]["ids"]) == 1
    assert by_verb["controllers stop"]["after"]["running"] is False
    assert by_verb["workflows start"]["name"] == "patient/one"
    assert by_verb["workflows signal"]["after"] == {"signal": "other"}
    assert by_verb["workflows terminate"]["after"]["state"] == "terminated"


# What changes nothing that an operator has, or is the work of the app.
UNAUDITED = {
    "new": "writes files",
    "demo": "runs the app on a database of its own",
    "run": "is the work of the app; pending migrations are audited as `migrate`",
    "serve": "is the work of the app; each administrative request is audited",
    "backup": "writes a file",
    "connect try": "fetches a page, and writes a fixture beside the connector",
    "connect check": "looks, on a database of its own",
    "audit-services": "reads source files",
    **dict.fromkeys("status why trace paces cost metrics graph audit doctor check smoke simulate".split(), "looks"),
    **dict.fromkeys(["queues list", "queues show", "dead list", "dead groups", "dead show", "cron list"], "looks"),
    **dict.fromkeys(["objects list", "objects show", "controllers list", "controllers status"], "looks"),
    **dict.fromkeys(["workflows list", "workflows show", "sources list", "sources show"], "looks"),
}
TRIAL = """

@app.trial.stage("always", within="1s", least=1)
async def always(items: list[int]) -> list[int]:
    return [1]


app.stand_in(app.http(), "https://shop.example", make=lambda now: None, module="none")
"""
MORE_COMMANDS = """
dead edit 1 shop.py --body {"item":"book"}
dead replay 2 shop.py
dead discard 3 shop.py --reason test
dead fixed 4 shop.py --note test
trial shop.py --standins --items 1
migrate shop.py
restore copy.db --database restored.db
move restored.db moved.db
"""


def verbs() -> list[str]:
    """Every command, a noun with each of its verbs."""
    found = {name: penstock.get_command(click.Context(penstock), name) for name in COMMANDS}
    return [
        name if verb is None else f"{name} {verb}"
        for name, command in found.items()
        for verb in (command.commands if isinstance(command, click.Group) else [None])
    ]


@pytest.mark.only_on("sqlite")
def test_every_command_is_audited_or_known_to_need_no_audit(empty_folder: Path, terminal: Terminal) -> None:
    shop_in(empty_folder, SHOP + MORE + TRIAL)
    worked("cursed", "cursed", "cursed", "cursed")
    (empty_folder / "migrations" / "0002_more.sql").write_text("create table more (id integer);")
    assert terminal("backup", "copy.db", "shop.db").code == 0
    for line in (COMMANDS_RUN + MORE_COMMANDS).split("\n"):
        said = terminal(*line.split()) if line else None
        assert said is None or said.code == 0, (line, said)

    audited = {each["verb"] for database in ("shop.db", "moved.db") for each in audit(terminal, database=database)}
    assert sorted(verbs()) == sorted({*audited, *UNAUDITED})
    assert not audited & {*UNAUDITED}


def test_dead_letters_leave_one_entry_a_command(shop: Path, terminal: Terminal) -> None:
    worked("cursed", "cursed", "cursed", "cursed")

    assert terminal("dead", "replay", "1", "2", "shop.db").code == 0
    assert terminal("dead", "discard", "3", "shop.db", "--reason", "test data").code == 0
    assert terminal("dead", "discard", "3", "shop.db", "--reason", "once more").code == 0
    assert terminal("dead", "fixed", "4", "shop.db", "--note", "by hand").code == 0

    replayed, discarded, fixed = audit(terminal)[::-1]
    assert (replayed["verb"], replayed["count"], replayed["after"]["letters"]) == ("dead replay", 2, [1, 2])
    assert (discarded["name"], discarded["after"]["note"]) == ("3", "test data")
    assert (fixed["verb"], fixed["after"]["resolution"]) == ("dead fixed", "fixed")


def test_a_command_that_fails_or_changes_nothing_leaves_none(full: Path, terminal: Terminal) -> None:
    assert terminal("queues", "pause", "none", "shop.db").code == 4
    assert terminal("queues", "resume", "sales", "shop.db").code == 0
    assert terminal("queues", "send", "sales", '{"wrong": 1}', "shop.py").code == 2
    assert terminal("workflows", "pause", "none", "shop.py").code == 4
    assert terminal("controllers", "tune", "pages", "shop.py", "--rate", "-1").code != 0

    assert audit(terminal) == []
    assert "No operator has changed anything" in terminal("audit", "shop.db").words


def test_entries_are_found_by_object_and_by_verb_and_drawn(full: Path, terminal: Terminal) -> None:
    for line in ("queues pause sales shop.db", "cron pause sweep shop.db", "workflows start patient shop.py --id one"):
        assert terminal(*line.split()).code == 0

    assert [each["verb"] for each in audit(terminal, "--object", "sales")] == ["queues pause"]
    assert [each["verb"] for each in audit(terminal, "--object", "one")] == ["workflows start"]
    assert [each["name"] for each in audit(terminal, "--verb", "cron")] == ["sweep"]
    assert [each["name"] for each in audit(terminal, "--verb", "cron pause")] == ["sweep"]
    assert len(audit(terminal, "--limit", "2")) == 2
    words = terminal("audit", "shop.db").words
    assert "paused: false to true" in words
    assert "queues pause" in words


def test_a_migration_that_a_command_applies_leaves_an_entry(empty_folder: Path, terminal: Terminal) -> None:
    shop_in(empty_folder, SHOP)
    assert terminal("migrate", "shop.py").code == 0

    (entry,) = audit(terminal)
    assert (entry["verb"], entry["kind"], entry["count"]) == ("migrate", "database", 1)
