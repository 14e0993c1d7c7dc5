"""`penstock appstore ...`: tables for people, JSON and CSV for programs, exit codes that mean something."""

from __future__ import annotations

import csv
import io
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click
import pytest
from rich.cells import cell_len

from penstock.cli import reference
from penstock.cli.main import main, penstock
from penstock_systems.appstore.reading.commands import appstore
from penstock_systems.appstore.reading.shown import TURNS
from tests.extent import sampled
from tests.systems.appstore.market_rows import HOSTILE
from tests.systems.appstore.markets import market, terminal
from tests.unit.cli import Terminal

__all__ = ["market", "terminal"]

LISTS: dict[str, tuple[str, ...]] = {
    "apps": ("apps",),
    "keywords": ("keywords",),
    "clusters": ("clusters",),
    "opportunities": ("opportunities",),
    "stars": ("stars",),
    "shares": ("shares",),
    "lists": ("list", "show"),
}


def verbs(group: click.Group, *before: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found += verbs(command, *before, name) if isinstance(command, click.Group) else [(*before, name)]
    return found


# -- how the commands are found -------------------------------------------------------------------------------------


@pytest.mark.only_on("sqlite")
def test_help_names_the_system_and_imports_nothing_of_it() -> None:
    look = (
        "import sys; from penstock.cli.main import main; code = main(['--help']); "
        "sys.exit(code or any(name.startswith('penstock_systems.appstore') for name in sys.modules))"
    )

    said = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=False, timeout=60)

    assert said.returncode == 0, said.stderr
    assert "Systems:\n  appstore" in said.stdout


@pytest.mark.only_on("sqlite")
def test_a_system_is_found_through_its_entry_point(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    place = "penstock_systems.appstore.reading.commands:appstore"
    others = [
        EntryPoint("shelf", place, reference.GROUP),
        EntryPoint("broken", "no.such.module:here", reference.GROUP),
        EntryPoint("wrong", "penstock_systems.appstore.reading.shown:calm", reference.GROUP),
        EntryPoint("run", place, reference.GROUP),
    ]
    monkeypatch.setattr(reference, "entry_points", lambda group: others)

    assert main(["shelf", "--help"]) == 0
    assert main(["broken", "--help"]) == 2
    assert "no.such.module" in capsys.readouterr().err
    assert main(["wrong"]) == 2
    assert main(["nonsense"]) == 2
    command = penstock.get_command(click.Context(penstock), "run")
    assert command is not None
    assert command is not appstore  # nobody takes the place of Penstock's own


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("verb", verbs(appstore), ids=" ".join)
def test_every_verb_teaches_with_an_example_and_speaks_json(
    verb: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["appstore", *verb, "--help"]) == 0

    told = capsys.readouterr().out
    assert f"Example:\n    penstock appstore {' '.join(verb)}" in told
    assert "--json" in told
    assert "--database" in told


# -- readings -------------------------------------------------------------------------------------------------------


def test_every_list_is_reported_as_a_table_as_json_and_as_csv(terminal: Terminal) -> None:
    for name, words in LISTS.items():
        drawn, told, sheet = (terminal("appstore", *words, *how) for how in ((), ("--json",), ("--csv",)))

        assert (drawn.code, told.code, sheet.code) == (0, 0, 0), drawn.err + told.err + sheet.err
        assert list(told.told) == [name]
        rows = list(csv.DictReader(io.StringIO(sheet.out, newline=""), strict=True))
        assert len(rows) == len(told.told[name])
        assert set(rows[0] if rows else ()) == set(told.told[name][0] if rows else ())


def test_what_moved_is_reported_in_all_three_ways(terminal: Terminal) -> None:
    told = terminal("appstore", "trends", "--most", "2", "--json").told["trends"]
    rows = list(csv.DictReader(io.StringIO(terminal("appstore", "trends", "--most", "2", "--csv").out, newline="")))

    assert [row["kind"] for row in rows] == ["rising app"] * 2 + ["climber"] * 2 + ["rising market"] * 2
    assert [row["track_id"] for row in rows[:2]] == [str(app["track_id"]) for app in told["rising_apps"]]
    assert "Markets that rise" in terminal("appstore", "trends").out


@sampled(
    "words",
    [
        ("apps", "--market", "101"),
        ("apps", "--keyword", "habit tracker"),
        ("keywords",),
        ("clusters",),
        ("opportunities",),
        ("trends",),
        ("app", "101008"),
        ("app", "101013"),
        ("cluster", "101"),
        ("keyword", "Habit Tracker"),
        ("opportunity", "101"),
    ],
    ids=" ".join,
    every=3,
)
def test_at_eighty_columns_nothing_runs_over_and_no_title_does_anything(
    terminal: Terminal, words: tuple[str, ...]
) -> None:
    said = terminal("appstore", *words)

    assert said.code == 0, said.err
    assert max(map(cell_len, said.out.splitlines())) <= 80
    assert all(each.isprintable() or each == "\n" for each in said.out)
    assert not TURNS & set(said.out)


def test_titles_are_shown_as_text_and_kept_whole_in_json(terminal: Terminal) -> None:
    drawn = terminal("appstore", "apps", "--market", "101").out
    told = terminal("appstore", "apps", "--market", "101", "--json").told["apps"]

    assert "<script>alert('habit')</script>" in drawn
    assert "[bold red]habits[/] & more" in drawn
    assert {app["track_name"] for app in told} >= set(HOSTILE)


def test_no_cell_of_a_sheet_is_a_formula(terminal: Terminal) -> None:
    sheet = terminal("appstore", "apps", "--market", "101", "--csv").out

    names = [row["track_name"] for row in csv.DictReader(io.StringIO(sheet, newline=""))]
    assert len(names) == 16
    assert not [name for name in names if name.startswith(("=", "+", "-", "@", "\t", "\r"))]
    assert '\'=HYPERLINK("https://evil.example","free")' in names


def test_orders_and_filters_reach_the_query(terminal: Terminal) -> None:
    def ids(*words: str) -> list[int]:
        return [app["track_id"] for app in terminal("appstore", "apps", "--most", "2", *words, "--json").told["apps"]]

    assert ids("--by", "newest") == [900_000, 900_001]
    assert ids("--genre", "Lifestyle") == [104_000, 102_000]
    assert ids("--developer", "1021") == [102_001, 102_005]
    assert ids("--keyword", "birdsong") == [108_001, 108_002]


def test_what_is_not_there_ends_with_four_and_a_wrong_call_with_two(terminal: Terminal, tmp_path: Path) -> None:
    unknown = (("app", "5"), ("cluster", "5"), ("keyword", "zz"), ("opportunity", "zz"), ("list", "show", "zz"))
    for words in (*unknown, ("shared", "zz", "--json"), ("unshare", "zz"), ("star", "5"), ("list", "add", "a", "5")):
        assert terminal("appstore", *words).code == 4, words
    assert terminal("appstore", "app", "5", "--json").error["code"] == "not_found"
    wrong: tuple[tuple[str, ...], ...] = (
        ("apps", "--by", "ratings", "--genre", "Lifestyle"),
        ("apps", "--json", "--csv"),
        ("apps", "--most", "0"),
        ("apps", "--by", "luck"),
        ("app", "many"),
        ("report",),
        ("report", "--out", str(tmp_path / "no" / "such.html")),
        ("list", "add", "a\x1bb", "101001"),
        ("track", "?!"),
    )
    for call in wrong:
        assert terminal("appstore", *call).code == 2, call


@pytest.mark.only_on("sqlite")
def test_a_database_of_something_else_is_distinguished_from_one_of_the_pipeline(
    terminal: Terminal, tmp_path: Path
) -> None:
    other = tmp_path / "other.db"
    (tmp_path / "other.py").write_text("import penstock as ps\napp = ps.App('other')\n")
    assert terminal("migrate", str(tmp_path / "other.py")).code == 0

    said = terminal("appstore", "apps", "--database", str(other))

    assert said.code == 2
    assert "not a database of the App Store pipeline" in said.err
    assert terminal("appstore", "apps", "--database", str(tmp_path / "none.db")).code == 3
    assert terminal("appstore", "apps").code == 0  # its usual file is meant, though there are two databases here


@pytest.mark.only_on("sqlite")
def test_looking_changes_nothing(terminal: Terminal, market: str) -> None:
    before = Path(market).read_bytes()

    for words in (*LISTS.values(), ("trends",), ("app", "101001"), ("report", "--out", "report.html")):
        assert terminal("appstore", *words).code == 0

    assert Path(market).read_bytes() == before


# -- what people do -------------------------------------------------------------------------------------------------


@pytest.mark.spec("B8-T29", "B8-T38", "B8-T39")
def test_stars_lists_and_tracked_keywords_are_kept_by_commands(terminal: Terminal) -> None:
    def done(*words: str) -> Any:
        said = terminal("appstore", *words, "--json")
        assert said.code == 0, said.err
        return said.told

    assert done("star", "101002", "101003") == {"starred": [101_002, 101_003], "user": "me"}
    done("unstar", "101002")
    done("star", "--publisher", "1012", "--user", "ada")
    done("list", "add", "rivals", "101002", "101005")
    done("list", "remove", "rivals", "101005")
    assert done("track", "Habit  Tracker!")["tracked"] == ["habit tracker"]

    assert [app["track_id"] for app in done("stars")["stars"]] == [101_003]
    assert [each["developer_id"] for each in done("stars", "--publisher", "--user", "ada")["publishers"]] == [1_012]
    assert [app["track_id"] for app in done("list", "show", "rivals")["apps"]] == [101_002]
    assert [each["keyword"] for each in done("keywords", "--tracked")["keywords"]] == ["habit tracker"]
    done("untrack", "habit tracker")
    assert done("keywords", "--tracked")["keywords"] == []


@pytest.mark.spec("B8-T40")
def test_a_report_is_shared_opened_and_taken_back(terminal: Terminal) -> None:
    shared = terminal("appstore", "share", "--title", "For Ada", "--days", "30", "--out", "ada.html", "--json")
    token = shared.told["token"]
    assert re.fullmatch("[0-9a-f]{32}", token), "it is typed as an argument, and must not look like an option"

    opened = terminal("appstore", "shared", token, "--out", "again.html")

    assert opened.code == 0, opened.err
    assert Path("again.html").read_bytes() == Path("ada.html").read_bytes()
    (row,) = terminal("appstore", "shares", "--json").told["shares"]
    assert (row["title"], row["opened"]) == ("For Ada", 1)
    assert terminal("appstore", "unshare", token).code == 0
    assert terminal("appstore", "shared", token, "--out", "third.html").code == 4
    assert not os.path.exists("third.html")
