"""`penstock run --reload`: a change of the code starts new workers, and no message is lost or processed twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import apsw
import pytest

from penstock.cli.reference import load
from penstock.cli.reload import folder_of, snapshot
from tests.extent import patient
from tests.unit.cli import PROGRAM, SHOP, Terminal, environ, shop_in

VERSIONED = "import asyncio\n" + SHOP.replace(
    '    app.db.write("insert into sold (item) values (:item)", sale)',
    '    await asyncio.sleep(0.02)\n    app.db.write("insert into sold (item) values (:item)", item=f"{sale.item} VERSION")',
)


@contextmanager
def reloading(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    log = folder / "log"
    with log.open("w") as written:
        process = subprocess.Popen(
            [PROGRAM, "run", "shop.py", "--reload", "--port", "0"], cwd=folder, env=environ(), stderr=written, text=True
        )
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()


def until(happened: Callable[[], bool], log: Path) -> None:
    ends = time.monotonic() + patient(60)
    while not happened():
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.05)


def sold(folder: Path) -> list[str]:
    with closing(apsw.Connection(str(folder / "shop.db"))) as connection:
        return [str(item) for (item,) in connection.execute("select item from sold")]


def edited(folder: Path, version: str) -> None:
    if not (folder / "migrations").exists():
        shop_in(folder)
    (folder / "shop.py").write_text(VERSIONED.replace("VERSION", version))


@pytest.mark.fault("F01")
def test_messages_flow_while_the_code_changes_and_none_is_lost_or_doubled(empty_folder: Path) -> None:
    edited(empty_folder, "0")
    app = load("shop.py")
    send = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__].send
    sent: list[str] = []

    def send_more() -> None:
        items = [str(len(sent) + number) for number in range(20)]
        asyncio.run(send(*items))
        sent.extend(items)

    with reloading(empty_folder) as (process, log):
        for version in ("0", "1", "2"):
            edited(empty_folder, version)

            def seen(version: str = version) -> bool:
                send_more()
                return any(item.endswith(f" {version}") for item in sold(empty_folder))

            until(seen, log)
        until(lambda: len(sold(empty_folder)) >= len(sent), log)
        process.send_signal(signal.SIGINT)

        assert process.wait(timeout=patient(60)) == 130
    counts = Counter(item.partition(" ")[0] for item in sold(empty_folder))
    assert counts == Counter(sent)
    assert log.read_text().count("Restarting: shop.py changed.") == 2


def test_code_that_does_not_compile_leaves_the_workers_as_they_are_and_a_correction_starts_new_ones(
    empty_folder: Path,
) -> None:
    edited(empty_folder, "0")
    with reloading(empty_folder) as (process, log):
        until(lambda: "worker.started" in log.read_text(), log)
        (empty_folder / "shop.py").write_text("def broken(:\n")
        until(lambda: "shop.py, line 1:" in log.read_text(), log)
        assert "The workers continue with the code from before." in log.read_text()
        assert "worker.stopped" not in log.read_text()

        edited(empty_folder, "1")
        until(lambda: log.read_text().count("worker.started") == 2, log)
        (empty_folder / "shop.py").write_text("import nothing_here\n")
        until(lambda: "The app ended with exit code 2. A change of its code starts it again." in log.read_text(), log)
        edited(empty_folder, "2")
        until(lambda: log.read_text().count("worker.started") == 3, log)
        assert log.read_text().count("serving its routes at http://127.0.0.1:") == 3, "--port is kept"

        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=patient(60)) == 0


def test_the_apps_files_are_watched_and_not_those_of_a_virtual_environment(empty_folder: Path) -> None:
    for place in ("shop.py", "migrations/0001.sql", "parts/more.py", "penstock.toml", "shop.db", ".venv/lib.py"):
        (empty_folder / place).parent.mkdir(exist_ok=True)
        (empty_folder / place).write_text("")
    (empty_folder / "env").mkdir()
    (empty_folder / "env" / "pyvenv.cfg").write_text("")
    (empty_folder / "env" / "other.py").write_text("")

    folder = folder_of("shop.py")

    assert folder == empty_folder
    found = sorted(str(path.relative_to(folder)) for path in snapshot(folder))
    assert found == ["migrations/0001.sql", "parts/more.py", "penstock.toml", "shop.py"]
    assert folder_of("penstock.cli.main:app") == Path(os.path.dirname(load.__code__.co_filename)).parent


@pytest.mark.parametrize("option", ["--json", "--until-idle", "--virtual=1h"])
def test_what_ends_by_itself_is_not_reloaded(terminal: Terminal, shop: Path, option: str) -> None:
    said = terminal("run", "shop.py", "--reload", option)

    assert (said.code, said.out) == (2, "")
    assert "--reload runs until Ctrl-C" in said.err
