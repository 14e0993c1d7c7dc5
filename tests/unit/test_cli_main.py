"""The command itself: it teaches, speaks JSON when asked to, and ends with a code that means something."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from rich.console import Console

from penstock.cli import main as cli
from penstock.cli.main import COMMANDS, GROUPS, penstock
from penstock.cli.output import Listed, Output, draw, exit_code
from penstock.cli.reference import system_commands
from penstock.model.errors import BadApp, BadConfig, PenstockError, SchemaTooNew, StorageFull
from penstock.views.view import Column, View, ago_text, bytes_text, span_text, usd_text
from tests.extent import patient
from tests.unit.cli import PROGRAM, Terminal, environ
from tests.unit.cli import penstock as run_penstock

CONTEXT = click.Context(penstock)


def test_without_arguments_it_shows_the_commands_by_purpose_with_examples(terminal: Terminal) -> None:
    said = terminal()

    assert said.code == 0
    assert said.out == terminal("--help").out
    assert "penstock run market.py" in said.out
    assert "Exit codes" in said.out
    assert set(COMMANDS) == {name for commands in GROUPS.values() for name in commands}
    for purpose, example in GROUPS:
        assert f"\n{purpose}  (such as {example}):\n" in said.out
        assert example.split()[1] in COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_shows_an_example_and_json(terminal: Terminal, name: str) -> None:
    said = terminal(name, "--help")

    assert said.code == 0
    assert f"Example:\n    penstock {name}" in said.out
    assert "--json" in said.out
    assert f"  {name}" in terminal("--help").out


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    ctx = click.Context(command, info_name=name, parent=parent, terminal_width=80, max_content_width=80)
    yield command.get_help(ctx)
    if isinstance(command, click.Group):
        systems = system_commands() if parent is None else ()
        for each in (*command.list_commands(ctx), *systems):
            verb = command.get_command(ctx, each)
            assert verb is not None
            yield from _helps(verb, each, ctx)


def test_every_help_fits_80_columns() -> None:
    helps = list(_helps(penstock, "penstock", None))
    assert len(helps) > 100
    assert [line for text in helps for line in text.splitlines() if len(line) > 80] == []


def test_every_command_is_on_the_page_of_commands() -> None:
    page = (Path(__file__).parents[2] / "docs/operate/command-line.md").read_text("utf-8")

    assert [
        name for name in COMMANDS if f"| `penstock {name} " not in page and f"| `penstock {name}`" not in page
    ] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_loaded_from_its_own_file(name: str) -> None:
    command = penstock.get_command(CONTEXT, name)

    assert command is not None
    assert COMMANDS[name].endswith(f":{name.replace('-', '_')}")
    assert command.name == name


def test_the_version_names_what_it_runs_on(terminal: Terminal) -> None:
    assert terminal("--version").out.startswith("penstock 0.")
    assert list(terminal("--version", "--json").told) == ["penstock", "python", "sqlite"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["run"],
        ["run", "a.py", "--workers", "0"],
        ["run", "a.py", "--workers", "many"],
        ["status", "--no"],
    ],
)
def test_a_wrong_call_ends_with_2_and_says_how_it_goes(terminal: Terminal, arguments: list[str]) -> None:
    said = terminal(*arguments)
    assert said.code == 2
    assert said.out == ""
    assert "\n  Usage: penstock" in said.err

    said = terminal(*arguments, "--json")
    assert said.code == 2
    assert said.out == ""
    assert said.error["code"] == "usage"


@pytest.mark.parametrize(
    "arguments, told",
    [
        (["stauts"], "There is no command 'stauts'. Did you mean status"),
        (["apstore"], "Did you mean appstore"),
        (["queues", "lst"], "There is no command 'lst'. Did you mean list"),
        (["queues", "market.py"], "Write the command before the app or database: penstock queues list market.py"),
        (["run", "a.py", "--untill-idle"], "--until-idle"),
    ],
)
def test_a_word_that_is_misspelt_is_answered_with_the_nearest(
    terminal: Terminal, arguments: list[str], told: str
) -> None:
    said = terminal(*arguments)

    assert said.code == 2
    assert told in said.err


def test_an_unknown_word_is_answered_with_the_commands_each_once(terminal: Terminal) -> None:
    said = terminal("frobnicate")

    (listed,) = re.findall(r"There are: (.*) and \d+ more", said.err)
    assert len(set(listed.split(", "))) == len(listed.split(", "))


@pytest.mark.parametrize("place", [["--json", "status"], ["status", "--json"]])
def test_json_may_stand_before_or_behind_the_command(terminal: Terminal, place: list[str]) -> None:
    said = terminal(*place)

    assert said.code == 3
    assert said.error["code"] == "store_unavailable"


@pytest.mark.parametrize(
    "error, code",
    [
        (BadConfig("no"), 2),
        (BadApp("no"), 2),
        (StorageFull(), 3),
        (SchemaTooNew("no"), 3),
        (PenstockError("no"), 1),
    ],
)
def test_each_kind_of_failure_has_its_code(error: PenstockError, code: int) -> None:
    assert exit_code(error) == code


def test_an_unexpected_error_ends_with_1_and_a_traceback(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(cli.penstock, "main", broken)

    said = terminal("status")
    assert (said.code, said.out) == (1, "")
    assert "Traceback" in said.err
    said = terminal("status", "--json")
    assert (said.code, said.error["code"]) == (1, "internal")


def test_ctrl_c_ends_with_130_and_says_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.penstock, "main", interrupted)

    assert terminal("status") == (130, "", "")


def test_a_real_ctrl_c_ends_a_real_process_with_130(empty_folder: Path) -> None:
    (empty_folder / "slow.py").write_text("import time\nopen('began', 'w').close()\ntime.sleep(60)")
    process = subprocess.Popen([PROGRAM, "migrate", "slow.py"], cwd=empty_folder, env=environ())
    until = time.monotonic() + patient(30)
    while not (empty_folder / "began").exists() and time.monotonic() < until:
        time.sleep(0.01)

    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=patient(30)) == 130


def test_a_reader_that_leaves_early_is_no_error(empty_folder: Path) -> None:
    piped = f"{PROGRAM} --help | head -c 1; echo ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", piped], env=environ(), capture_output=True, text=True, check=True)

    assert done.stdout.endswith("0\n")
    assert done.stderr == ""


def test_a_file_of_settings_is_named_with_config(empty_folder: Path) -> None:
    (empty_folder / "live.toml").write_text('database = "live.db"')

    said = run_penstock("--config", "live.toml", "status", folder=empty_folder)

    assert said.code == 3
    assert "There is no database live.db" in said.err


@pytest.mark.parametrize(
    "text, told",
    [
        ("workrs = 2", ["penstock.toml", "workrs", "Known settings: "]),
        ('workers = "two"', ["penstock.toml", "workers is 'two'"]),
        ("workers == 2", ["penstock.toml", "not valid TOML"]),
    ],
)
@pytest.mark.parametrize("command", [["status"], ["cost"], ["run", "shop.py"], ["migrate", "shop.py"]])
def test_a_wrong_setting_stops_every_command_with_2(
    terminal: Terminal, shop: Path, text: str, told: list[str], command: list[str]
) -> None:
    (shop / "penstock.toml").write_text(text)

    said = terminal(*command)
    assert (said.code, said.out) == (2, "")
    for part in told:
        assert part in said.err
    assert terminal(*command, "--json").error["code"] == "bad_config"


@pytest.mark.fault("F48")
@pytest.mark.spec("A12-06")
def test_an_error_shows_no_password_and_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    for json in (True, False):
        Output(json=json).fail(BadConfig("postgresql://ada:hunter2@db.example/shop \x1b[31m is no file"), 2)

        said = capsys.readouterr().err
        assert "hunter2" not in said
        assert "\x1b" not in said


def test_numbers_are_written_for_people() -> None:
    assert [bytes_text(size) for size in (0, 999, 1_000, 12_345_678, 5_600_000_000_000)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "12.3 MB",
        "5,600.0 GB",
    ]
    spans = {0: "0 s", 59.4: "59 s", 119: "119 s", 121: "2 min", 7_199: "119 min", 7_300: "2 h", 172_800: "2 days"}
    assert {seconds: span_text(seconds) for seconds in spans} == spans
    second = 1_000_000
    assert [ago_text(at * second, 100 * second) for at in (100, 90, 128)] == ["now", "10 s ago", "in 28 s"]
    assert [usd_text(usd) for usd in (0, 0.001, 0.01, 1_234.5)] == ["$0.00", "<$0.01", "$0.01", "$1,234.50"]


VIEW = View(
    "things",
    (
        Column("name", "name"),
        Column("state", "state", "state"),
        Column("left", "left", "count", rank=1),
        Column("note", "note", "prose", rank=2),
    ),
)
ROWS = [{"name": "a name of thirty-two characters!", "state": "timed_out", "left": 1_234_567, "note": "a note " * 9}]


def drawn(width: int) -> str:
    written = io.StringIO()
    draw(Console(file=written, width=width, force_terminal=True), [Listed(VIEW, ROWS)])
    return written.getvalue()


def test_a_state_has_a_colour_on_a_terminal_unless_it_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    yellow = "\x1b[33mtimed out"
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert yellow in drawn(80)

    monkeypatch.setenv("NO_COLOR", "1")
    assert yellow not in drawn(80)
    assert "timed out" in drawn(80)


@pytest.mark.parametrize(
    "width, shown", [(200, ["left", "note"]), (90, ["left", "note"]), (70, ["left"]), (50, []), (20, [])]
)
def test_a_narrow_table_leaves_out_the_least_important_columns_and_cuts_nothing(width: int, shown: list[str]) -> None:
    text = drawn(width)

    assert [column for column in ("left", "note") if f"{column}" in text] == shown
    assert ("1,234,567" in text) == ("left" in shown)
    assert "timed out" in text.replace("\n", "") or width == 20
    assert "…" not in text
