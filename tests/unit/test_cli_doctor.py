"""`penstock doctor`: each check can fail, and says what to do when it does."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from penstock.cli import doctor
from penstock.cli.reference import load
from tests.unit.cli import Terminal


def made() -> None:
    """The database of `shop.py`, with a message in it."""
    app = load("shop.py")
    module = sys.modules[app.queues["sales"].handlers["sale"][0].function.__module__]
    asyncio.run(module.send("lamp"))


def checks(terminal: Terminal, *arguments: str) -> dict[str, list[str]]:
    """The statuses by name."""
    said = terminal("doctor", *arguments, "--json")
    found: dict[str, list[str]] = {}
    for check in said.told["checks"]:
        assert list(check) == ["name", "status", "message", "fix"]
        assert check["fix"] or check["status"] == "ok", check
        found.setdefault(check["name"], []).append(check["status"])
    assert said.told["passed"] == (said.code == 0) == (not any("fail" in each for each in found.values()))
    return found


def test_a_sound_database_passes_every_check(terminal: Terminal, shop: Path) -> None:
    made()

    found = checks(terminal, "shop.py", "--deep")

    assert set(found) >= {
        "python",
        "sqlite",
        "config",
        "disk",
        "sockets",
        "database",
        "integrity",
        "journal",
        "balance",
        "clock",
        "workers",
        "locks",
    }
    assert all(status == "ok" for statuses in found.values() for status in statuses)
    assert "all passed." in terminal("doctor", "shop.py").out


def test_before_anything_exists_it_says_what_comes_next(terminal: Terminal, shop: Path) -> None:
    assert checks(terminal)["database"] == ["warn"]
    assert "penstock run" in terminal("doctor").words
    assert checks(terminal, "shop.py")["database"] == ["warn"]
    assert "Create it with: penstock run shop.py" in terminal("doctor", "shop.py").words


@pytest.mark.parametrize(
    "version, status",
    [
        ("3.40.1", "fail"),
        ("3.51.2", "fail"),
        ("3.51.3", "ok"),
        ("3.52.0", "fail"),
        ("3.53.0", "ok"),
        ("3.54.1", "ok"),
        ("4.0.0", "ok"),
    ],
)
def test_a_sqlite_with_the_bug_in_its_log_is_refused(version: str, status: str) -> None:
    assert doctor.sqlite(version).status == status


def test_a_wrong_setting_fails(terminal: Terminal, shop: Path) -> None:
    (shop / "penstock.toml").write_text("workrs = 2")

    assert checks(terminal, "shop.py")["config"] == ["fail"]


def test_an_app_that_cannot_be_loaded_fails(terminal: Terminal, shop: Path) -> None:
    assert checks(terminal, "nowhere.py")["app"] == ["fail"]


def test_a_folder_that_is_missing_fails(terminal: Terminal, empty_folder: Path) -> None:
    assert checks(terminal, "--database", "gone/shop.db")["folder"] == ["fail"]
    said = terminal("doctor", "--database", "gone/shop.db").words
    assert f"mkdir-p{empty_folder}/gone" in said.replace(" ", "")  # a long path is folded


@pytest.mark.parametrize("free, status", [(50_000_000, "fail"), (500_000_000, "warn"), (5_000_000_000, "ok")])
def test_a_disk_that_is_nearly_full_is_reported(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch, free: int, status: str
) -> None:
    made()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))

    assert checks(terminal, "shop.db")["disk"] == [status]


def test_a_network_file_system_is_refused(terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made()
    monkeypatch.setattr(doctor, "file_system", lambda _: "nfs4")

    assert "fail" in checks(terminal, "shop.db")["disk"]


def test_the_file_system_is_that_of_the_nearest_mount() -> None:
    if not Path("/proc/mounts").exists():
        pytest.skip("only Linux tells")
    assert doctor.file_system(Path("/proc")) == "proc"
    assert doctor.file_system(Path("/proc/self")) == "proc"


def test_a_log_that_another_program_turned_off_fails(terminal: Terminal, shop: Path) -> None:
    made()
    with closing(apsw.Connection("shop.db")) as other:
        other.pragma("journal_mode", "delete")

    assert checks(terminal, "shop.db")["database"] == ["fail"]
    assert "turned the write-ahead log of shop.db off" in terminal("doctor", "shop.db").words


@pytest.mark.fault("F09")
@pytest.mark.parametrize("hours, told", [(3, "workers continue from that time"), (300, "has run for an hour")])
def test_a_clock_behind_the_noted_time_is_reported_with_its_consequences(
    terminal: Terminal, shop: Path, hours: int, told: str
) -> None:
    made()
    with closing(apsw.Connection("shop.db")) as connection:
        connection.execute("update penstock_facts set value = value + ?", (hours * 3_600_000_000,))

    assert checks(terminal, "shop.db")["clock"] == ["warn"]
    assert told in terminal("doctor", "shop.db").words


def test_a_clock_that_was_set_back_is_reported(terminal: Terminal, shop: Path) -> None:
    made()
    with closing(apsw.Connection("shop.db")) as connection:
        connection.execute("update penstock_messages set sent_at = sent_at + 7200000000")

    assert checks(terminal, "shop.db")["clock"] == ["warn"]
    assert "min ahead of this clock" in terminal("doctor", "shop.db").words


def test_counters_that_differ_from_rows_fail_a_deep_look(terminal: Terminal, shop: Path) -> None:
    made()
    with closing(apsw.Connection("shop.db")) as connection:
        connection.execute("delete from penstock_messages")

    assert "balance" not in checks(terminal, "shop.db")
    assert checks(terminal, "shop.db", "--deep")["balance"] == ["fail"]


def test_a_lock_file_without_an_owner_is_reported(terminal: Terminal, shop: Path) -> None:
    made()
    (shop / "shop.db-worker-99").write_bytes(b"")

    assert checks(terminal, "shop.db")["locks"] == ["warn"]
    assert "rm shop.db-worker-99" in terminal("doctor", "shop.db").out


def test_a_folder_for_sockets_that_cannot_be_used_is_a_warning(
    terminal: Terminal, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(shop / "nowhere"))
    assert checks(terminal, "shop.db")["sockets"] == ["warn"]

    long = shop / ("x" * 120)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert checks(terminal, "shop.db")["sockets"] == ["warn"]


def test_a_reserve_that_is_gone_is_reported(terminal: Terminal, shop: Path) -> None:
    made()
    (shop / "shop.db-reserve").unlink()

    assert checks(terminal, "shop.db")["reserve"] == ["warn"]


def test_a_database_near_its_cap_is_reported(terminal: Terminal, shop: Path) -> None:
    made()
    (shop / "penstock.toml").write_text("[limits]\ndatabase_bytes_max = 150000")

    assert checks(terminal, "shop.db")["size"] == ["warn"]


def test_the_object_is_the_only_thing_on_stdout(terminal: Terminal, shop: Path) -> None:
    made()

    assert json.loads(terminal("doctor", "shop.py", "--json").out)["passed"] is True


def renamed_queue(shop: Path) -> None:
    """A message waits in `sales`, and the app has called that queue something else since."""
    made()
    (shop / "other.py").write_text('import penstock as ps\n\napp = ps.App("shop")\napp.queue("sold")\n')


def test_a_queue_that_holds_messages_and_is_not_declared_is_reported(terminal: Terminal, shop: Path) -> None:
    renamed_queue(shop)

    assert checks(terminal, "shop.py")["queues"] == ["ok"]
    assert checks(terminal, "other.py")["queues"] == ["warn"]
    assert "sales (1)" in terminal("doctor", "other.py").words


def test_a_check_names_the_queue_that_is_not_declared(terminal: Terminal, shop: Path) -> None:
    renamed_queue(shop)

    said = terminal("check", "other.py", "--json")

    assert said.code == 1
    (found,) = [each for each in said.told["checks"] if each["id"] == "undeclared-queues"]
    assert found["status"] == "fail"
    assert "sales (1)" in found["message"]
    assert "penstock queues purge" in found["fix"]
