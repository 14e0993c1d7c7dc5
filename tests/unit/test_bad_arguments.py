"""Odd names, addresses and values: Penstock's own error names the parameter, and shows no password."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock.cli.main import main
from penstock.config import parse
from penstock.model.envelope import encode
from penstock.model.errors import BadApp, BadConfig, BadMessage
from penstock.stores import checked_address
from penstock.testing import TestApp, virtual

PASSWORD = "hunter2"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PENSTOCK_DATABASE", raising=False)


# -- names and types ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "  ", 5, None, "../up", "a/b", "a\\b", ".hidden", "a\0b", "x" * 300])
def test_a_name_that_cannot_name_a_file_is_refused(name: Any) -> None:
    with pytest.raises(BadApp, match="name is"):
        ps.App(name)


@pytest.mark.parametrize("database", [5, "", "  ", b"market.db", ":memory:", "file:x?mode=memory", ["a.db"], 1.5, True])
def test_a_database_that_is_no_path_and_no_url_is_refused(database: Any) -> None:
    with pytest.raises(BadConfig, match="database is"):
        ps.App("shop", database=database)


@pytest.mark.parametrize(
    "settings",
    [
        {"parallel": "8"},
        {"retries": "3"},
        {"batch": 2.5},
        {"timeout": "9"},
        {"rate": "1"},
        {"batch_wait": []},
        {"cpu_timeout": True},
    ],
    ids=str,
)
def test_a_setting_of_a_queue_that_is_no_number_is_named(settings: dict[str, Any]) -> None:
    (field,) = settings

    with pytest.raises(BadApp, match=rf"'jobs'\): {field} is"):
        ps.App("shop").queue("jobs", **settings)


@pytest.mark.parametrize("name", ["", "a b", "x" * 300])
def test_a_queue_needs_a_name(name: str) -> None:
    with pytest.raises(BadApp, match="is not a queue name"):
        ps.App("shop").queue(name)


@virtual
@pytest.mark.parametrize("field, value", [("delay", "5"), ("delay", ""), ("delay", None), ("unique", 5)])
async def test_an_option_of_a_send_of_the_wrong_type_is_named(field: str, value: Any) -> None:
    app = ps.App("shop")
    jobs = app.queue("jobs")
    async with TestApp(app), app.unit():
        with pytest.raises(BadMessage, match=field):
            jobs.send({"n": 1}, **{field: value})


@virtual
@pytest.mark.parametrize("key", [5, b"a", ("a",), True])
async def test_a_key_that_is_no_text_is_named(key: Any) -> None:
    async def charge() -> int:
        return 1

    app = ps.App("shop")
    async with TestApp(app):
        with pytest.raises(BadMessage, match="key is"):
            await app.once(key, charge)
        with pytest.raises(BadMessage, match="key is"):
            async with app.unit(key):
                pass


@pytest.mark.parametrize("name", ["x" * 250, "x" * 300, "a/" * 3_000])
def test_a_path_that_is_too_long_is_an_error_of_the_store(name: str) -> None:
    run = "import asyncio, sys, penstock; asyncio.run(penstock.App('shop', database=sys.argv[1])._open())"

    said = subprocess.run([sys.executable, "-c", run, name], capture_output=True, text=True, check=False).stderr

    assert "penstock.model.errors.StoreUnavailable" in said.splitlines()[-1]


def test_a_process_without_descriptors_gets_an_error_of_the_store(tmp_path: Path) -> None:
    run = (
        "import asyncio, resource, penstock\n"
        "async def main():\n"
        "    app = penstock.App('shop')\n"
        "    for most in range(6, 40):\n"
        "        resource.setrlimit(resource.RLIMIT_NOFILE, (most, 100))\n"
        "        try:\n"
        "            await app._open()\n"
        "            await app.close()\n"
        "            print('opened')\n"
        "            return\n"
        "        except penstock.model.errors.PenstockError as error:\n"
        "            print(type(error).__name__)\n"
        "import penstock.model.errors\n"
        "asyncio.run(main())\n"
    )

    said = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)

    assert said.returncode == 0, said.stderr
    assert set(said.stdout.split()) == {"StoreUnavailable", "opened"}


# -- what JSON cannot carry -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload, field",
    [
        ({"tags": {1, 2}}, "tags"),
        ({"a": {"b": [0, b"raw"]}}, r"a\.b\[1\]"),
        ([frozenset()], r"\[0\]"),
        ({"a": ({"b": bytearray(b"x")},)}, r"a\[0\]\.b"),
    ],
    ids=str,
)
def test_a_set_or_bytes_in_a_plain_payload_is_refused_by_its_place(payload: Any, field: str) -> None:
    with pytest.raises(BadMessage, match=f"field {field} holds a"):
        encode(payload)


class Picture(msgspec.Struct):
    content: bytes
    tags: set[str]


def test_a_class_that_declares_bytes_and_sets_carries_them() -> None:
    assert json.loads(encode(Picture(b"raw", {"a"}))) == {"content": "cmF3", "tags": ["a"]}


# -- addresses ------------------------------------------------------------------------------------------------------

ADDRESSES = [
    f"postgresql://u:hun@ter2{PASSWORD}@127.0.0.1:1/db",
    f"postgresql://u:a/{PASSWORD}@127.0.0.1:1/db",
    f"postgresql://u:a?{PASSWORD}@127.0.0.1:1/db",
    f"postgresql://u:a#{PASSWORD}@127.0.0.1:1/db",
    f"host=127.0.0.1 user=u password={PASSWORD}",
    f"password = '{PASSWORD}'",
    f"mysql://u:{PASSWORD}@h/x",
    "sqlite:///market.db",
    f"redis://:{PASSWORD}@h/0",
    f"POSTGRESQL://u:{PASSWORD}@h/x",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_cannot_be_used_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(BadConfig) as refused:
        checked_address(address)

    assert PASSWORD not in str(refused.value)
    assert "postgresql://" in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        "market.db",
        "folder/mar=ket.db",
        Path("market.db"),
        "postgresql://ada@db.example/market",
        "postgresql://ada:p%40ss@db.example:5432/market?sslmode=require",
        "postgresql:///market?host=/run/postgresql",
        "postgres://a:b@one:5432,two:5433/market",
        "postgresql://[::1]:5432/market",
    ],
)
def test_an_address_that_can_be_used_is_kept_as_it_is(address: str | Path) -> None:
    assert checked_address(address) == str(address)


@pytest.mark.parametrize("address", [*ADDRESSES, f"postgresql://u:{PASSWORD}@127.0.0.1:1/db"])
@pytest.mark.parametrize("given", ["argument", "option", "environment", "settings", "list", "code"])
def test_doctor_shows_no_password_of_any_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], address: str, given: str
) -> None:
    arguments = ["doctor"]
    if given == "argument":
        arguments.append(address)
    elif given == "option":
        arguments += ["--database", address]
    elif given == "environment":
        monkeypatch.setenv("PENSTOCK_DATABASE", address)
    elif given in ("settings", "list"):
        value = json.dumps([address] if given == "list" else address)
        (tmp_path / "penstock.toml").write_text(f"database = {value}\n")
    else:
        (tmp_path / "odd.py").write_text(f"import penstock as ps\napp = ps.App('shop', database={address!r})\n")
        arguments.append("odd.py")

    for json_too in ([], ["--json"]):
        main([*arguments, *json_too])
        said = capsys.readouterr()
        assert said.out
        assert PASSWORD not in said.out + said.err


def test_a_setting_of_the_wrong_type_shows_no_password() -> None:
    with pytest.raises(BadConfig) as refused:
        parse(f'log = "postgresql://u:hun@{PASSWORD}@h/db"', "penstock.toml")

    assert PASSWORD not in str(refused.value)


def test_backup_shows_no_password_of_a_target(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["backup", f"mysql://u:{PASSWORD}@h/x", "--database", "none.db"]) == 2

    assert PASSWORD not in "".join(capsys.readouterr())
