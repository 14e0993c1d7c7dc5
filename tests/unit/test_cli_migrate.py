"""`penstock migrate`: what is applied, what is pending, and every problem with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli import Terminal

BOTH_STORES = True


@pytest.mark.spec("A8-09")
def test_what_is_pending_is_applied_once(terminal: Terminal, shop: Path) -> None:
    (shop / "migrations" / "0002_price.sql").write_text("alter table sold add column price real;")

    checked = terminal("migrate", "shop.py", "--check", "--json")
    assert checked.code == 1
    assert checked.told["pending"] == ["0001_sold", "0002_price"]
    assert not (shop / "shop.db").exists()

    applied = terminal("migrate", "shop.py", "--json")
    assert applied.code == 0
    assert applied.told["applied_now"] == ["0001_sold", "0002_price"]

    again = terminal("migrate", "shop.py", "--json")
    assert again.code == 0
    assert (again.told["applied_now"], again.told["pending"]) == ([], [])
    assert again.told["applied"] == ["0001_sold", "0002_price"]
    assert terminal("migrate", "shop.py", "--check").code == 0


def test_people_see_a_list(terminal: Terminal, shop: Path) -> None:
    terminal("migrate", "shop.py")
    (shop / "migrations" / "0002_price.sql").write_text("alter table sold add column price real;")

    lines = terminal("migrate", "shop.py", "--check").out.splitlines()

    assert [line.split() for line in lines[-4:-2]] == [["0001_sold", "applied"], ["0002_price", "pending"]]


@pytest.mark.spec("A8-09")
@pytest.mark.parametrize("check", [["--check"], []])
def test_a_file_edited_after_it_was_applied_is_reported(terminal: Terminal, shop: Path, check: list[str]) -> None:
    terminal("migrate", "shop.py")
    (shop / "migrations" / "0001_sold.sql").write_text("create table sold (item text, price real);")

    said = terminal("migrate", "shop.py", *check)

    assert said.code == 2
    assert "0001_sold was edited after it was applied" in said.err
    assert "new file" in said.err


def test_every_problem_is_reported_with_its_file_and_line(terminal: Terminal, shop: Path) -> None:
    (shop / "migrations" / "0002_bad.sql").write_text("create table a (id);\ndrop table a;\n\nbegin;")
    (shop / "migrations" / "0003_bad.sql").write_text("\ninsert into a values (:id);")

    said = terminal("migrate", "shop.py", "--json")

    assert said.code == 2
    message = said.error["message"]
    assert "3 problems" in message
    for place in ("0002_bad.sql:2:", "0002_bad.sql:4:", "0003_bad.sql:2:"):
        assert place in message


@pytest.mark.only_on("sqlite")
def test_a_statement_that_the_database_refuses_is_reported_and_nothing_of_its_file_stays(
    terminal: Terminal, shop: Path
) -> None:
    (shop / "migrations" / "0002_bad.sql").write_text("create table a (id);\nalter table nowhere add column x;")

    said = terminal("migrate", "shop.py")
    assert said.code == 2
    assert "0002_bad" in said.err
    assert "no such table: nowhere" in said.err
    (shop / "migrations" / "0002_bad.sql").write_text("create table a (id);")
    assert terminal("migrate", "shop.py", "--check", "--json").told["pending"] == ["0002_bad"]


def test_without_migrations_it_says_where_to_put_the_first(terminal: Terminal, shop: Path) -> None:
    (shop / "migrations" / "0001_sold.sql").unlink()

    said = terminal("migrate", "shop.py")

    assert said.code == 0
    assert "migrations/0001_start.sql" in said.out


def test_counts_that_an_app_keeps_are_set_up_too(terminal: Terminal, shop: Path) -> None:
    with (shop / "shop.py").open("a") as file:
        file.write("\napp.db.keep_count('sold')\n")
    assert terminal("migrate", "shop.py").code == 0

    with (shop / "shop.py").open("a") as file:
        file.write("\napp.db.keep_count('nowhere')\n")
    said = terminal("migrate", "./shop.py")

    assert said.code == 2
    assert "'nowhere' cannot be kept" in said.err


@pytest.mark.parametrize(
    "text, line, why",
    [
        ("create tabel x (y text);", 1, "tabel"),
        ("-- prices\n\ncreate table x (y text);\ninsert into nowhere (y) values (1);", 4, "nowhere"),
        ("create table x (y text);\n\ncreate index x_z on x (z);", 3, "z"),
    ],
    ids=["syntax", "no table", "no column"],
)
def test_a_check_prepares_every_statement_and_keeps_nothing(
    terminal: Terminal, shop: Path, text: str, line: int, why: str
) -> None:
    (shop / "migrations" / "0002_bad.sql").write_text(text)

    checked = terminal("migrate", "shop.py", "--check", "--json")

    assert checked.code == 2
    assert f"0002_bad.sql:{line}: 0002_bad:" in checked.error["message"]
    assert why in checked.error["message"]
    assert not (shop / "shop.db").exists()
    applied = terminal("migrate", "shop.py", "--json")
    assert f"0002_bad.sql:{line}:" in applied.error["message"]


def test_a_check_goes_on_from_what_is_applied(terminal: Terminal, shop: Path) -> None:
    assert terminal("migrate", "shop.py").code == 0
    (shop / "migrations" / "0002_price.sql").write_text("alter table sold add column price real;")

    for _ in range(2):
        checked = terminal("migrate", "shop.py", "--check", "--json")
        assert (checked.code, checked.told["pending"]) == (1, ["0002_price"])
