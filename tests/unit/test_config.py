"""Settings: every wrong one is named with its value and what is possible."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.config import Config, parse
from penstock.model.errors import BadConfig
from penstock.model.limits import CLOUDFLARE, LOCAL


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("PENSTOCK_CONFIG", "PENSTOCK_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_without_a_file_everything_has_its_default() -> None:
    config = Config.load()

    assert (config.database, config.workers, config.synchronous, config.port) == (None, 1, "full", 8787)
    assert config.limits == LOCAL


@pytest.mark.spec("G7-08")
def test_a_file_in_the_current_folder_is_read(empty_folder: Path) -> None:
    (empty_folder / "penstock.toml").write_text(
        'workers = 3\nprofile = "cloudflare"\n[log]\nlevel = "debug"\n[limits]\ncrons_max = 5\n'
    )

    config = Config.load()

    assert (config.workers, config.log.level, config.limits.crons_max) == (3, "debug", 5)
    assert config.limits.body_bytes_max == CLOUDFLARE.body_bytes_max


def test_a_file_can_be_named_by_the_environment(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty_folder / "live.toml").write_text("workers = 4")
    (empty_folder / "penstock.toml").write_text("workers = 3")
    monkeypatch.setenv("PENSTOCK_CONFIG", "live.toml")

    assert Config.load().workers == 4


def test_a_named_file_that_is_missing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CONFIG", "nowhere.toml")

    with pytest.raises(BadConfig, match=r"nowhere\.toml does not exist; PENSTOCK_CONFIG"):
        Config.load()


@pytest.mark.parametrize(
    "text, told",
    [
        ("workrs = 2", ["workrs", "Known settings:", "workers"]),
        ('workers = "two"', ["workers is 'two'", "`int`", "`str`"]),
        ("workers = 0", ["workers is 0", "at least 1"]),
        ('synchronous = "maybe"', ["synchronous", "maybe"]),
        ('[log]\nlevel = "loud"', ["log.level is 'loud'"]),
        ("log = 5", ["log is 5"]),
        ("[log]\ncolour = true", ["colour", "log.format"]),
        ('profile = "clowdflare"', ["clowdflare", "Did you mean cloudflare"]),
        ("[limits]\nbody_bytes = 5", ["body_bytes", "Did you mean body_bytes_max"]),
        ('[limits]\nbody_bytes_max = "big"', ["body_bytes_max", "big"]),
        ("[limits]\nbody_bytes_max = 0", ["body_bytes_max", "0"]),
        ("workers = = 2\n", ["not valid TOML", "line 1"]),
        ("grace_seconds = -1", ["grace_seconds", "-1"]),
        ("port = 70000", ["port", "70000"]),
    ],
)
def test_a_wrong_setting_names_the_file_the_setting_and_the_way_out(text: str, told: list[str]) -> None:
    with pytest.raises(BadConfig) as caught:
        parse(text, "penstock.toml")

    message = str(caught.value)
    assert message.startswith("penstock.toml")
    for part in told:
        assert part in message


def test_a_file_that_cannot_be_read_is_named(empty_folder: Path) -> None:
    (empty_folder / "penstock.toml").write_bytes(b"\xff\xfe")

    with pytest.raises(BadConfig, match=r"penstock\.toml.*UTF-8"):
        Config.load()


def test_a_folder_in_place_of_the_file_is_named(empty_folder: Path) -> None:
    (empty_folder / "penstock.toml").mkdir()

    with pytest.raises(BadConfig, match=r"penstock\.toml"):
        Config.load()


def test_the_database_is_the_one_named_nearest(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ps.App("market").database == "market.db"
    (empty_folder / "penstock.toml").write_text('database = "file.db"')
    assert ps.App("market").database == "file.db"
    monkeypatch.setenv("PENSTOCK_DATABASE", "environment.db")
    assert ps.App("market").database == "environment.db"
    assert ps.App("market", database="argument.db").database == "argument.db"


@pytest.mark.spec("G7-08")
def test_a_limit_that_is_overridden_holds_where_it_is_used() -> None:
    app = ps.App("market", config=parse("[limits]\nbody_bytes_max = 500\nbody_bytes_soft = 100", "penstock.toml"))

    assert app.limits.body_bytes_max == 500
