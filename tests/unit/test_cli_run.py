"""`penstock run`: what is sent gets done, what cannot start is told once, and a signal ends it in good order."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.cli import run
from penstock.cli.reference import APPS, load
from tests.extent import patient, sampled
from tests.unit.cli import PROGRAM, SHOP, Said, Terminal, environ, here, kept_elsewhere, penstock, shop_in

BOTH_STORES = True


def send(*items: str) -> None:
    app = load("shop.py")
    module = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]
    asyncio.run(module.send(*items))


def sold(folder: Path) -> list[int]:
    """How many sales were acked, are ready, are dead."""
    told = penstock("status", "shop.py", "--json", folder=folder).told
    (queue,) = told["queues"]
    return [queue["acked"], queue["ready"], queue["dead"]]


def test_what_was_sent_is_done_until_nothing_is_left(shop: Path) -> None:
    send("lamp", "chair", "cursed")

    said = penstock("run", "shop.py", "--until-idle", folder=shop)

    assert said.code == 0, said.err
    assert said.out == ""
    assert f"shop: 1 worker on {here('shop.db')}. Ctrl-C stops." in said.err
    assert sold(shop) == [2, 0, 1]
    assert not list(shop.glob("*-worker-*"))


def test_an_app_that_declares_a_queue_otherwise_than_another_did_is_reported_once(shop: Path) -> None:
    assert penstock("run", "shop.py", "--until-idle", folder=shop).code == 0
    (shop / "shop.py").write_text(SHOP.replace("retries=0", "retries=7"))

    said = penstock("run", "shop.py", "--workers", "2", "--until-idle", folder=shop)

    (line,) = [json.loads(line) for line in said.err.splitlines() if "queues.redeclared" in line]
    assert line["changed"] == ["sales: retries was 0, is now 7"]


@pytest.mark.only_on("sqlite")
def test_a_run_leaves_the_log_of_its_process_as_it_was(terminal: Terminal, shop: Path) -> None:
    before = [*logging.getLogger().handlers]

    assert terminal("run", "shop.py", "--until-idle").code == 0

    assert logging.getLogger().handlers == before


def test_two_workers_share_the_work_and_json_is_all_there_is_on_stdout(shop: Path) -> None:
    (shop / "shop.py").write_text(SHOP + "\nprint('noise')\n")
    send(*map(str, range(50)))

    said = penstock("run", "shop:app", "--workers", "2", "--until-idle", "--json", folder=shop)

    assert said.code == 0, said.err
    assert said.told == {"app": "shop", "database": here("shop.db"), "workers": 2}
    assert sold(shop) == [50, 0, 0]


def test_the_log_is_one_object_a_line(shop: Path) -> None:
    send("cursed\nforged")

    said = penstock("run", "shop.py", "--until-idle", "--json", folder=shop)

    events = [json.loads(line)["event"] for line in said.err.splitlines()]
    assert "worker.started" in events
    assert "worker.stopped" in events


@sampled(
    "text, code, told",
    [
        ("x = 1", 2, "has no app"),
        ("import nothing_here", 2, "No module named 'nothing_here'"),
        (SHOP + "\napp.db.keep_count('nowhere')", 2, "cannot be kept"),
        (SHOP.replace('App("shop")', 'App("shop", database="gone/shop.db")'), 3, "does not exist"),
    ],
    every=2,
)
def test_what_cannot_start_is_reported_once(empty_folder: Path, text: str, code: int, told: str) -> None:
    shop_in(empty_folder, text)

    said = penstock("run", "shop.py", "--workers", "3", folder=empty_folder)
    assert (said.code, said.out) == (code, "")
    assert said.err.count(told) == 1
    assert "Traceback" not in said.err
    assert told in penstock("run", "shop.py", "--json", folder=empty_folder).error["message"]


def test_settings_are_used_where_no_option_says_otherwise(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []

    def supervise(make: partial[object], more: list[str], listening: None) -> int:
        given.append({"reference": make.args[0], "more": more, **make.keywords})
        return 0

    monkeypatch.setattr(run, "supervise", supervise)
    (shop / "penstock.toml").write_text("workers = 3\ngrace_seconds = 7.5")

    assert terminal("run", "shop.py").code == 0
    assert terminal("run", "shop.py", "--workers", "2", "--grace", "0", "--until-idle").code == 0

    plain, chosen = given
    assert (plain["reference"], plain["workers"], plain["grace"], plain["more"]) == ("shop.py", 3, 7.5, [])
    assert (chosen["workers"], chosen["grace"], chosen["more"]) == (2, 0.0, ["--until-idle"])


def test_the_exit_code_is_that_of_the_supervisor(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "supervise", lambda *_, **__: 3)

    assert terminal("run", "shop.py") == Said(3, "", terminal("run", "shop.py").err)


def until(happened: Callable[[], bool], seconds: float = 30.0) -> None:
    ends = time.monotonic() + patient(seconds)
    while not happened():
        assert time.monotonic() < ends, "it never happened"
        time.sleep(0.02)


SLOWLY = """
import asyncio, pathlib

async def slowly():
    pathlib.Path("began").touch()
    await asyncio.sleep(0.5)
"""


@sampled("number, code", [(signal.SIGTERM, 0), (signal.SIGINT, 130)], every=2)
def test_a_signal_lets_handlers_finish_and_leaves_nothing_behind(shop: Path, number: signal.Signals, code: int) -> None:
    (shop / "shop.py").write_text(SLOWLY + SHOP.replace("    if sale.item", "    await slowly()\n    if sale.item"))
    send("lamp")
    process = subprocess.Popen(
        [PROGRAM, "run", "shop.py"],
        cwd=shop,
        env=environ(**kept_elsewhere()),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until((shop / "began").exists)

    process.send_signal(number)
    _, said = process.communicate(timeout=patient(30))

    assert process.returncode == code, said
    assert sold(shop) == [1, 0, 0]
    assert not list(shop.glob("*-worker-*"))


# -- virtual time -------------------------------------------------------------------------------------------


def test_six_days_pass_in_moments_on_a_database_of_their_own(terminal: Terminal, shop: Path) -> None:
    began = time.monotonic()

    said = terminal("run", "shop.py", "--virtual", "6d", "--seed", "7", "--json")

    assert said.code == 0
    assert time.monotonic() - began < patient(20)
    assert (said.told["virtual_seconds"], said.told["seed"]) == (518_400.0, 7)
    assert said.told["queues"][0]["name"] == "sales"
    assert not (shop / "shop.db").exists()
    assert "6d of virtual time" in terminal("run", "./shop.py", "--virtual", "6d").out


DYING = """
import penstock as ps

app = ps.App("dying")
jobs = app.queue("jobs", retries=0)

@app.cron("0 * * * *", reason="each hour")
async def begin():
    jobs.send({"n": 1})

@jobs.handler
async def work(message):
    raise ZeroDivisionError("nothing to divide by")
"""


def test_virtual_time_ends_with_the_causes_of_dead_letters(terminal: Terminal, empty_folder: Path) -> None:
    (empty_folder / "dying.py").write_text(DYING)

    said = terminal("run", "dying.py", "--virtual", "3h")

    assert said.out.rstrip().endswith("Dead letters:\n  jobs: ZeroDivisionError: nothing to divide by (3)"), said.out
    assert terminal("run", "dying.py", "--virtual", "3h", "--json").told["dead_letters"][0]["letters"] == 3
    assert "Dead letters:" not in terminal("run", "dying.py", "--virtual", "10m").out


def test_help_names_every_system(terminal: Terminal) -> None:
    said = " ".join(terminal("run", "--help").out.split())
    assert f"the name of a system: {', '.join(sorted(APPS))}," in said


def test_a_span_that_is_none_ends_with_2(terminal: Terminal, shop: Path) -> None:
    said = terminal("run", "shop.py", "--virtual", "six days")

    assert said.code == 2
    assert "'six days' is not a duration" in said.err


SLOW_START = """
import time

with open("starts", "a") as file:
    file.write("started\\n")
if len(open("starts").readlines()) == {slow}:
    time.sleep(1)
"""


@pytest.mark.only_on("sqlite")
@pytest.mark.parametrize("slow", [2, 3], ids=["the one that tries the app out", "a worker"])
def test_an_interrupt_while_another_process_starts_ends_without_a_traceback(empty_folder: Path, slow: int) -> None:
    """Ctrl-C reaches every process of the terminal's group, however far each has come."""
    (empty_folder / "shop.py").write_text("import penstock as ps\n\napp = ps.App('shop')\napp.queue('jobs')\n")
    (empty_folder / "sitecustomize.py").write_text(SLOW_START.format(slow=slow))
    run = subprocess.Popen(
        [str(PROGRAM), "run", "shop.py"],
        cwd=empty_folder,
        env=environ(PYTHONPATH=str(empty_folder)),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    starts = empty_folder / "starts"
    while not starts.exists() or len(starts.read_text().splitlines()) < slow:
        time.sleep(0.01)

    os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=patient(60))

    assert run.returncode == 130, said
    assert "Traceback" not in said
    assert "KeyboardInterrupt" not in said
