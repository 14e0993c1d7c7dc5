"""`penstock status` and `penstock cost`: the numbers, read without a trace, and what to do where there are none."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.cli.reference import load
from tests.extent import patient, sampled
from tests.unit.cli import PROGRAM, SHOP, Terminal, environ, here, kept_elsewhere, penstock, shop_in

BOTH_STORES = True


def sent(*items: str, delay: float = 0.0) -> Any:
    """The app of `shop.py`, with this much in its queue."""
    app = load("shop.py")
    module = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]
    asyncio.run(module.send(*items, delay=delay))
    return app


def worked(*items: str) -> Any:
    app = sent(*items)
    asyncio.run(app.run(until_idle=True))
    return app


def files(folder: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}


# -- what there is ------------------------------------------------------------------------------------------


def test_status_has_the_numbers_of_every_queue_in_the_agreed_shape(
    terminal: Terminal, shop: Path, kept_on: str
) -> None:
    worked("lamp", "chair", "cursed")
    sent("sofa", delay=600)
    sent("desk")

    said = terminal("status", "shop.py", "--json")

    assert said.code == 0
    (queue,) = said.told["queues"]
    assert 0 <= queue.pop("oldest_age_seconds") < 60
    assert queue == {
        "name": "sales",
        "sent": 5,
        "acked": 2,
        "ready": 1,
        "leased": 0,
        "delayed": 1,
        "dead": 1,
        "purged": 0,
        "expired": 0,
        "paused": False,
        "exact": True,
    }
    assert said.told["workers"] == []
    assert said.told["database"]["path"] == here("shop.db")
    least = (shop / "shop.db").stat().st_size if kept_on == "sqlite" else 1_000_000
    assert said.told["database"]["bytes"] >= least
    assert said.told["database"]["level"] == "ok"
    assert said.told["usage"]["rows_written"] == 2


def test_status_on_a_terminal_is_a_table(terminal: Terminal, shop: Path) -> None:
    worked("lamp", "cursed")

    said = terminal("status", "shop.py")

    assert said.code == 0
    assert "no workers" in said.out
    header, _, row = said.out.splitlines()[-3:]
    assert header.split() == ["queue", "ready", "leased", "delayed", "dead", "sent", "acked"]
    assert row.split() == ["sales", "0", "0", "0", "1", "2", "1"]


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_cut(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    worked("lamp", "cursed")
    monkeypatch.setenv("COLUMNS", str(width))

    for command in (["status"], ["cost"], ["doctor"], ["migrate", "shop.py", "--check"]):
        said = terminal(*command)

        assert said.code == 0
        if width >= 40:
            assert max(map(len, said.out.splitlines())) <= width
        assert "…" not in said.out


@pytest.mark.parametrize(
    "arguments",
    [["shop.py"], ["shop:app"], ["shop.db"], ["--database", "shop.db"], []],
    ids=lambda given: " ".join(given),
)
def test_a_database_is_found_by_app_file_option_or_because_it_is_the_only_one(
    terminal: Terminal, shop: Path, arguments: list[str]
) -> None:
    sent("lamp")
    with closing(apsw.Connection(str(shop / "notes.db"))) as other:
        other.execute("create table notes (id)")  # not Penstock's: it does not count

    for command in ("status", "cost", "doctor"):
        assert terminal(command, *arguments, "--json").code == 0
    assert terminal("status", *arguments, "--json").told["queues"][0]["ready"] == 1


@pytest.mark.only_on("sqlite")
def test_the_environment_and_the_settings_name_a_database(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent("lamp")
    (shop / "shop.db").rename(shop / "moved.db")
    (shop / "penstock.toml").write_text('database = "moved.db"')
    assert terminal("status", "--json").told["database"]["path"] == "moved.db"
    monkeypatch.setenv("PENSTOCK_DATABASE", "nowhere.db")
    assert "nowhere.db" in terminal("status").err


@pytest.mark.only_on("sqlite")
def test_looking_leaves_no_trace(terminal: Terminal, shop: Path) -> None:
    worked("lamp")
    shutil.copy("shop.db", "before.db")

    for command in ("status", "cost", "doctor"):
        assert terminal(command, "shop.db").code == 0

    assert (shop / "shop.db").read_bytes() == (shop / "before.db").read_bytes()
    assert not [name for name in files(shop) if "-worker-" in name]


AT_WORK = """
import asyncio, shop

async def main():
    async with shop.app:
        print("open", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@contextmanager
def another_process_at_work(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", AT_WORK], cwd=folder, env=environ(**kept_elsewhere()), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_process_at_work_is_alive_until_it_is_killed(terminal: Terminal, shop: Path) -> None:
    with another_process_at_work(shop) as process:
        (worker,) = terminal("status", "shop.db", "--json").told["other_processes"]
        assert (worker["pid"], worker["alive"]) == (process.pid, True)
        assert "no workers, 1 other process" in terminal("status", "shop.db").out
        assert "no process died" in terminal("doctor", "shop.db").out

        process.kill()
        process.wait()

        (worker,) = terminal("status", "shop.db", "--json").told["other_processes"]
        assert worker["alive"] is False
        said = terminal("doctor", "shop.db")
        assert f"Died: {worker['id']} (pid {process.pid})" in said.words
        assert said.code == 0


def test_a_supervisor_is_not_counted_as_a_worker(terminal: Terminal, shop: Path) -> None:
    running = subprocess.Popen(
        [PROGRAM, "run", "shop.py"], cwd=shop, env=environ(**kept_elsewhere()), stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stderr is not None
        assert any("worker.started" in line for line in running.stderr)
        for _ in range(300):  # the supervisor enrols once it has heard of its worker
            told = terminal("status", "shop.db", "--json").told
            if any(each["alive"] for each in told["other_processes"]):  # it enrols, then takes its lock
                break
            time.sleep(0.05)

        assert (len(told["workers"]), len(told["other_processes"])) == (1, 1)
        assert "1 worker, 1 other process (supervisor, server or producer)" in terminal("status", "shop.db").out
        assert "1 worker, no process died" in terminal("doctor", "shop.db").words
    finally:
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=patient(60))


INTERNALS = """

@app.cron("0 6 * * *", reason="charts change overnight")
async def crawl() -> None: ...
"""


def test_internal_queues_are_drawn_only_where_that_is_asked_for(terminal: Terminal, empty_folder: Path) -> None:
    shop_in(empty_folder, SHOP + INTERNALS)
    worked("lamp")

    for command in (["status"], ["queues", "list"]):
        said = terminal(*command, "shop.db")
        assert "sales" in said.out
        assert "cron.crawl" not in said.out
        assert "internal queues not shown: --all shows them" in said.words
        assert "cron.crawl" in terminal(*command, "shop.db", "--all").out
        told = terminal(*command, "shop.db", "--json").told["queues"]
        assert "cron.crawl" in [queue["name"] for queue in told]


# -- what there is not --------------------------------------------------------------------------------------


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("command", ["status", "cost"])
def test_without_a_database_it_says_how_to_get_one(terminal: Terminal, command: str) -> None:
    said = terminal(command)
    assert (said.code, said.out) == (3, "")
    assert "There is no Penstock database in" in said.err
    assert "penstock run market.py" in said.err
    assert terminal(command, "--json").error["code"] == "store_unavailable"


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("command", ["status", "cost"])
@pytest.mark.parametrize("arguments", [["--database", "nowhere.db"], ["nowhere.db"], ["shop.py"]])
def test_a_database_that_is_not_there_is_named(
    terminal: Terminal, shop: Path, command: str, arguments: list[str]
) -> None:
    said = terminal(command, *arguments)

    assert said.code == 3
    assert "There is no database nowhere.db" in said.err or "There is no database shop.db" in said.err
    assert not list(shop.glob("*.db"))


@pytest.mark.only_on("sqlite")
def test_several_databases_ask_for_a_choice(terminal: Terminal, shop: Path) -> None:
    sent("lamp")
    shutil.copy("shop.db", "copy.db")

    said = terminal("status")

    assert said.code == 2
    assert "copy.db, shop.db" in said.err
    assert "--database copy.db" in said.err


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("command", ["status", "cost"])
@pytest.mark.parametrize(
    "content, told",
    [
        (b"this is no database at all" * 100, "damaged or not a database"),
        (b"", "has none of Penstock's tables"),
    ],
)
def test_a_file_that_is_none_of_ours_ends_with_3(
    terminal: Terminal, empty_folder: Path, command: str, content: bytes, told: str
) -> None:
    (empty_folder / "shop.db").write_bytes(content)

    said = terminal(command, "shop.db")

    assert (said.code, said.out) == (3, "")
    assert "shop.db" in said.err
    assert told in said.err


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_database_of_another_program_ends_with_3(terminal: Terminal, empty_folder: Path, mode: str) -> None:
    with closing(apsw.Connection("notes.db")) as other:
        other.pragma("journal_mode", mode)
        other.pragma("user_version", 99)
        other.execute("create table notes (id)")

    said = terminal("status", "notes.db")

    assert said.code == 3
    assert "notes.db has none of Penstock's tables" in said.err


@pytest.mark.only_on("sqlite")
def test_a_database_whose_first_pages_are_still_in_its_log_is_found(terminal: Terminal, shop: Path) -> None:
    with another_process_at_work(shop):
        assert terminal("status", "--json").told["database"]["path"] == here("shop.db")


@pytest.mark.only_on("sqlite")
def test_a_damaged_page_is_found_by_the_doctor(terminal: Terminal, shop: Path) -> None:
    worked(*map(str, range(200)))
    with (shop / "shop.db").open("r+b") as file:
        file.seek(5 * 4096)
        file.write(os.urandom(4096))

    said = terminal("doctor", "shop.db")

    assert said.code == 1
    assert "damaged" in said.out
    assert "backup" in said.out


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("command", ["status", "cost", "doctor"])
def test_a_newer_schema_is_refused_with_a_sentence(terminal: Terminal, shop: Path, command: str) -> None:
    sent("lamp")
    with closing(apsw.Connection("shop.db")) as newer:
        newer.pragma("user_version", 99)

    said = terminal(command, "shop.db")

    assert said.code == (1 if command == "doctor" else 3)
    assert "shop.db has schema 99; this Penstock knows" in said.words
    assert "Upgrade Penstock" in said.words


@sampled(
    "database, told",
    [("gone/away/shop.db", "gone/away"), ("/proc/shop.db", "/proc"), (".", "is a folder")],
    every=3,
)
def test_a_database_in_a_place_that_cannot_be_written_is_named(shop: Path, database: str, told: str) -> None:
    for command in (["run", "shop.py", "--until-idle"], ["migrate", "shop.py"]):
        said = penstock(*command, folder=shop, PENSTOCK_DATABASE=database)

        assert said.code == 3, said
        assert told in said.err


@pytest.mark.only_on("sqlite")
def test_a_name_with_markup_in_it_is_shown_as_it_is(terminal: Terminal, shop: Path) -> None:
    sent("lamp")
    (shop / "shop.db").rename(shop / "[red]shop.db")

    assert "[red]shop.db" in terminal("status", "--database", "[red]shop.db").out
    assert "[red]shop.db" in terminal("doctor", "--database", "[red]shop.db").out


@pytest.mark.only_on("postgres")
@sampled("address", ["postgresql://ada:hunter2@{}/none", "postgresql://{}/none?password=hunter2"], every=2)
def test_no_password_of_a_server_that_cannot_be_used_is_shown(
    terminal: Terminal, shop: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, host = os.environ["PENSTOCK_DATABASE"].rpartition("@")
    named = address.format(host.partition("/")[0])
    monkeypatch.setenv("PENSTOCK_DATABASE", named)

    for command in (("status", named), ("doctor", named), ("run", "shop.py"), ("migrate", "shop.py")):
        for more in ((), ("--json",)):
            said = terminal(*command, *more)
            assert said.code in (1, 3), said
            assert host.partition("/")[0] in said.out + said.err, said
            assert "hunter2" not in said.out + said.err, said


def test_a_database_without_queues_says_what_to_do(terminal: Terminal, empty_folder: Path) -> None:
    (empty_folder / "bare.py").write_text('import penstock as ps\n\napp = ps.App("bare")\n')
    assert terminal("migrate", "bare.py").code == 0

    assert "No queue has been used yet" in terminal("status", "bare.py").out


# -- cost ---------------------------------------------------------------------------------------------------


@pytest.mark.spec("A4-14")
def test_cost_has_the_agreed_shape_and_the_statements_that_cost_most(terminal: Terminal, shop: Path) -> None:
    worked("lamp", "chair")

    told = terminal("cost", "shop.py", "--json").told
    assert list(told)[:4] == ["month", "usage", "usd", "ceilings"]
    assert told["month"] == time.strftime("%Y-%m", time.gmtime())
    assert list(told["usage"]) == [
        "rows_read",
        "rows_written",
        "queue_operations",
        "blob_reads",
        "blob_writes",
        "object_seconds",
        "requests",
    ]
    assert told["usage"]["rows_written"] == 2
    assert told["usd"] == pytest.approx(2 / 1_000_000 * 0.01)

    said = terminal("cost", "shop.py")
    assert "rows written" in said.out
    assert "sales:sell" in said.out
    assert "insert into sold" in said.out


def test_a_month_without_use_says_so(terminal: Terminal, shop: Path) -> None:
    sent("lamp")

    said = terminal("cost", "--month", "2020-01")
    assert said.code == 0
    assert "Nothing was metered" in said.out
    assert terminal("cost", "--month", "2020-01", "--json").told["usd"] == 0


@pytest.mark.parametrize("month", ["2020-13", "yesterday", "2020"])
def test_a_month_that_is_none_ends_with_2(terminal: Terminal, shop: Path, month: str) -> None:
    sent("lamp")

    said = terminal("cost", "--month", month)

    assert said.code == 2
    assert f"'{month}' is not a month. Write it like 2026-11." in said.err
