"""What a terminal shows while something goes on: `status --watch`, and progress on a terminal, in a pipe and with --json."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from penstock.cli import output as outputs
from penstock.cli.output import Output, progress
from tests.extent import patient
from tests.unit.cli import PROGRAM, Terminal, environ, kept_elsewhere
from tests.unit.test_cli_queues import sent, worked

BOTH_STORES = True
CLEAR_SCREEN, LEAVE_SCREEN, SHOW_CURSOR = "\x1b[H", "\x1b[?1049l", "\x1b[?25h"


def read(terminal: int, until: str, seconds: float = 60.0) -> str:
    """What comes until a text has come."""
    text, ends = "", time.monotonic() + patient(seconds)
    while until not in text:
        assert time.monotonic() < ends, text
        try:
            text += os.read(terminal, 65_536).decode()
        except OSError:  # the other end is closed
            break
    return text


@pytest.mark.parametrize("columns", [40, 100])
def test_a_watch_refreshes_in_place_and_ctrl_c_leaves_the_screen_as_it_was(shop: Path, columns: int) -> None:
    worked("lamp", "chair")
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    clean = {name: value for name, value in environ(**kept_elsewhere()).items() if name != "COLUMNS"}
    watching = subprocess.Popen(
        [PROGRAM, "status", "shop.py", "--watch", "--every", "0.2"],
        cwd=shop,
        env={**clean, "TERM": "xterm"},
        stdin=there,
        stdout=there,
        stderr=there,
        start_new_session=True,
    )
    os.close(there)
    try:
        drawn = read(here, "sales") + read(here, "sent/s, ")
        sent("sofa")
        drawn += read(here, "\x1b[H", 10)
        watching.send_signal(signal.SIGINT)
        rest = read(here, "\x00", 30)
        code = watching.wait(timeout=patient(30))
    finally:
        watching.kill()
        os.close(here)

    assert code == 130
    assert drawn.count(CLEAR_SCREEN) >= 2  # each drawing begins at the top left corner
    assert LEAVE_SCREEN in rest
    assert SHOW_CURSOR in rest
    assert "Traceback" not in drawn + rest


def test_in_a_pipe_one_drawing_follows_the_other_with_rates(shop: Path) -> None:
    worked("lamp")
    watching = subprocess.Popen(
        [PROGRAM, "status", "shop.py", "--watch", "--every", "0.2"],
        cwd=shop,
        env=environ(**kept_elsewhere()),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert watching.stdout is not None
    try:
        lines: list[str] = []
        while sum("sent/s, " in line for line in lines) < 2:
            lines.append(watching.stdout.readline())
            assert lines[-1], watching.communicate()
            if len(lines) == 1:
                sent("sofa", "chair")
    finally:
        watching.kill()
        watching.communicate()
    assert "\x1b" not in "".join(lines)
    assert any(line.split()[:2] == ["sales", "2"] for line in lines)


def test_a_watch_has_no_json(terminal: Terminal, shop: Path) -> None:
    worked()

    said = terminal("status", "shop.py", "--watch", "--json")

    assert (said.code, said.out, said.error["code"]) == (2, "", "usage")


# -- progress -----------------------------------------------------------------------------------------------


class Written(io.StringIO):
    """Stderr, of a terminal or not."""

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def moved(*, json: bool, is_terminal: bool) -> str:
    written = Written(is_terminal=is_terminal)
    with progress(Output(json=json, err=written), "copying", 200) as report:
        for done in range(0, 201, 50):
            report(done)
    return written.getvalue()


def test_progress_is_a_bar_on_a_terminal_lines_in_a_pipe_and_nothing_for_programs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outputs, "LINE_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")

    assert moved(json=True, is_terminal=True) == moved(json=True, is_terminal=False) == ""
    lines = [f"copying: {done} of 200 ({done / 2:.0f}%)" for done in range(0, 201, 50)]
    assert moved(json=False, is_terminal=False).splitlines() == lines
    bar = moved(json=False, is_terminal=True)
    assert "copying" in bar
    assert "\x1b[" in bar


def test_a_line_comes_only_every_few_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 4.0, 5.0, 5.0, 9.0, 11.0, 11.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    written = Written(is_terminal=False)
    with progress(Output(err=written), "copying", None) as report:
        for done in (1, 2, 3, 4):
            report(done)

    assert written.getvalue() == "copying: 2\ncopying: 4\n"


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize(
    "command, title",
    [
        (["run", "shop.py", "--virtual", "6d"], "virtual time: "),
        (["backup", "copy.db", "shop.db"], "backup: "),
        (["restore", "saved.db", "--database", "restored.db"], "restoring: "),
        (["move", "shop.db", "moved.db"], "moving: "),
        (["dead", "replay", "--all", "shop.py"], "replaying dead letters: "),
        (["dead", "discard", "--queue", "sales", "--reason", "test", "--yes", "shop.py"], "discarding dead letters: "),
    ],
    ids=lambda given: given[0] if isinstance(given, list) else "",
)
def test_commands_that_take_long_report_how_far_they_are(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], title: str
) -> None:
    worked("cursed")
    assert terminal("backup", "saved.db", "shop.db").code == 0
    monkeypatch.setattr(outputs, "LINE_SECONDS", 0.0)

    said = terminal(*command)

    assert (said.code, title in said.err) == (0, True), said
