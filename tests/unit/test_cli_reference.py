"""Finding an app by its name: every way to write it, and a plain sentence where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.cli.output import exit_code
from penstock.cli.reference import load
from penstock.cli.tryout import try_out
from penstock.model.errors import BadConfig, PenstockError
from tests.extent import sampled

APP = "import penstock as ps\napp = ps.App('shop')\n"


@sampled(
    "reference",
    ["shop.py", "shop.py:app", "./shop.py", "shop", "shop:app", "inner.market", "inner.market:app", "inner/market.py"],
    every=3,
)
def test_an_app_is_found_by_file_or_module(empty_folder: Path, reference: str) -> None:
    (empty_folder / "shop.py").write_text(APP)
    (empty_folder / "inner").mkdir()
    (empty_folder / "inner" / "market.py").write_text(APP)

    assert load(reference).name == "shop"
    assert try_out(reference).database == "shop.db"


def test_modules_beside_a_file_can_be_imported_by_it(empty_folder: Path) -> None:
    (empty_folder / "deep").mkdir()
    (empty_folder / "deep" / "names.py").write_text("NAME = 'deep'")
    (empty_folder / "deep" / "shop.py").write_text("import penstock as ps, names\napp = ps.App(names.NAME)")

    assert load("deep/shop.py").name == "deep"


def test_migrations_are_those_beside_the_file(empty_folder: Path) -> None:
    (empty_folder / "deep").mkdir()
    (empty_folder / "deep" / "shop.py").write_text(APP)

    assert load("deep/shop.py").migrations == empty_folder / "deep" / "migrations"


def test_a_file_may_be_called_like_a_module_that_is_loaded(empty_folder: Path) -> None:
    (empty_folder / "json.py").write_text(APP)
    (empty_folder / "my-shop.py").write_text(
        APP + "class Sale(ps.Event):\n    price: int\nps.App('x').queue('a', Sale)"
    )

    assert load("json.py").name == "shop"
    assert load("my-shop.py").name == "shop"


@sampled(
    "reference, text, told",
    [
        ("nowhere.py", None, ["nowhere.py does not exist", "Write `shop.py`"]),
        ("nowhere", None, ["no module 'nowhere'", "Write `shop.py`"]),
        ("nowhere.inner:app", None, ["no module 'nowhere'"]),
        (":app", None, ["names no app"]),
        ("shop.py", "x = 1", ["has no app", "app = penstock.App"]),
        ("shop.py:app", "x = 1", ["shop.py:app does not exist", "It has none"]),
        ("shop.py:x", APP + "x = 1", ["shop.py:x is a int, not an app", "It has: app"]),
        ("shop.py", APP + "b = ps.App('b')", ["several apps: app, b", "`shop.py:app`"]),
        ("shop.py", "import penstock\n1 / 0", ["ZeroDivisionError", "shop.py, line 2"]),
        ("shop:app", "import penstock\n1 / 0", ["ZeroDivisionError", "shop.py, line 2"]),
        ("shop.py", "def broken(:", ["SyntaxError", "line 1"]),
        ("shop.py", "import not_installed", ["No module named 'not_installed'", "shop.py, line 1"]),
        ("shop", "import not_installed", ["No module named 'not_installed'", "shop.py, line 1"]),
        ("shop.py", "raise SystemExit(3)", ["ends the program", "__main__"]),
        ("shop.py", APP + "app.queue('a'); app.queue('a')", ["two queues called 'a'"]),
        ("shop.py", "import os\nos._exit(7)", ["exit code 7"]),
    ],
    every=3,
)
def test_where_there_is_no_app_it_says_why(
    empty_folder: Path, reference: str, text: str | None, told: list[str]
) -> None:
    if text is not None:
        (empty_folder / "shop.py").write_text(text)

    finders: list[Callable[[str], object]] = [try_out] if text and "_exit" in text else [load, try_out]
    for find in finders:
        with pytest.raises(PenstockError) as caught:
            find(reference)
        assert exit_code(caught.value) == 2
        for part in told:
            assert part in str(caught.value)


def test_one_app_under_two_names_is_one_app(empty_folder: Path) -> None:
    (empty_folder / "shop.py").write_text(APP + "application = app\n")

    assert load("shop.py").name == "shop"


def test_a_wrong_setting_is_reported_as_such(empty_folder: Path) -> None:
    (empty_folder / "shop.py").write_text(APP)
    (empty_folder / "penstock.toml").write_text("workrs = 2")

    with pytest.raises(BadConfig, match="workrs"):
        load("shop.py")


def test_what_an_app_prints_does_not_reach_stdout(empty_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (empty_folder / "shop.py").write_text(APP + "print('hello from the app')")

    load("shop.py")
    assert try_out("shop.py").name == "shop"

    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.count("hello from the app") == 2


def test_a_database_that_cannot_be_opened_is_reported_before_any_worker_starts(empty_folder: Path) -> None:
    (empty_folder / "shop.py").write_text(APP)
    (empty_folder / "shop.db").write_bytes(b"no database" * 100)

    with pytest.raises(PenstockError, match="damaged or not a database") as caught:
        try_out("shop.py")

    assert exit_code(caught.value) == 3


def test_a_migration_that_fails_is_reported_before_any_worker_starts(empty_folder: Path) -> None:
    (empty_folder / "shop.py").write_text(APP)
    (empty_folder / "migrations").mkdir()
    (empty_folder / "migrations" / "0001_bad.sql").write_text("alter table nowhere add column x;")

    with pytest.raises(PenstockError, match="no such table: nowhere") as caught:
        try_out("shop.py")

    assert exit_code(caught.value) == 2
