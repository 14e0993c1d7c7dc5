"""`penstock backup` and `penstock restore`: one moment of a database, taken while others work, from which work goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.moving.conftest import NewDatabase
from tests.moving.content import content, rows
from tests.moving.estate import HELD, READY, Estate, Sale, app_file, filled, waiting
from tests.unit.cli import Said, Terminal

BOTH = pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
TO_EITHER = pytest.mark.parametrize("there", ["sqlite", "postgres"])


def saved(terminal: Terminal, database: str, file: Path) -> Said:
    return terminal("backup", str(file), "--database", database, "--json")


def restored(terminal: Terminal, file: Path, estate: Estate, folder: Path) -> Said:
    return terminal("restore", str(file), app_file(estate, folder), "--json")


@BOTH
@TO_EITHER
@pytest.mark.fault("F54")
def test_a_restored_database_has_everything_and_work_goes_on(
    dialect: str, there: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database(dialect))
    before = content(estate.database)
    file = tmp_path / "backup.db"

    said = saved(terminal, estate.database, file)
    assert said.code == 0, said.err
    assert said.told["bytes"] == file.stat().st_size
    assert content(estate.database) == before
    asyncio.run(estate.app.run(until_idle=True))  # what happens after the backup is not in it

    arrived = Estate(new_database(there))
    said = restored(terminal, file, arrived, tmp_path)
    assert said.code == 0, said.err

    after = content(arrived.database)
    for name in before:
        if name not in ("messages", "workers", "counters"):
            assert after[name] == before[name], name
    asyncio.run(arrived.app.run(until_idle=True))
    assert asyncio.run(arrived.sold()) == dict.fromkeys(("done one", "done with a key", *HELD, *READY), 1)
    assert waiting(arrived.database) == ["delayed", "pulled"]
    assert terminal("doctor", arrived.database, "--deep").code == 0


@BOTH
@pytest.mark.fault("F54")
def test_a_backup_taken_while_workers_run_is_of_one_moment(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = Estate(new_database(dialect))
    items = [f"item {number}" for number in range(600)]
    files = [tmp_path / f"backup-{number}.db" for number in range(3)]

    async def work() -> list[Said]:
        async with estate.app, estate.app.unit():
            for item in items:
                estate.sales.send(Sale(item=item))
        running = asyncio.ensure_future(estate.app.run(until_idle=True))
        said = [await asyncio.to_thread(saved, terminal, estate.database, file) for file in files]
        await running
        return said

    for said in asyncio.run(work()):
        assert said.code == 0, said.err

    for file in files:
        arrived = Estate(new_database(dialect))
        assert restored(terminal, file, arrived, tmp_path).code == 0
        assert terminal("doctor", arrived.database, "--deep").code == 0  # as many as were sent, wherever they were
        asyncio.run(arrived.app.run(until_idle=True))
        assert asyncio.run(arrived.sold()) == dict.fromkeys(items, 1)


@BOTH
@pytest.mark.fault("F54")
def test_what_is_done_in_the_middle_of_a_backup_is_not_in_it(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate = filled(new_database(dialect))
    before = content(estate.database)
    worked: list[int] = []

    @contextmanager
    def meddling(*_: object) -> Iterator[Callable[[int], None]]:
        def moved(done: int) -> None:
            if not worked:
                worked.append(done)
                asyncio.run(estate.app.run(until_idle=True))

        yield moved

    monkeypatch.setattr("penstock.cli.move.progress", meddling)
    monkeypatch.setattr("penstock.moving.copying.PROGRESS_EVERY", 1)
    monkeypatch.setattr("penstock.moving.files.PAGES", 1)
    file = tmp_path / "backup.db"

    said = saved(terminal, estate.database, file)

    assert said.code == 0, said.err
    assert worked
    assert content(estate.database)["words"] != before["words"]
    kept = {name: rows(str(file), f"select * from penstock_{name}") for name in ("messages", "counters", "dead")}
    assert kept == {name: before[name] for name in kept}
    assert rows(str(file), "select word from words") == [(word,) for word, _ in before["words"]]


def test_what_only_a_server_has_comes_back_on_a_server(
    terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database("postgres"))
    more = tmp_path / "migrations"
    more.mkdir()
    for file in estate.app.migrations.glob("*.sql"):
        (more / file.name).write_text(file.read_text())
    (more / "0003_types.sqlite.sql").write_text("-- nothing here")
    (more / "0003_types.postgres.sql").write_text(
        "create type pair as (a int, b int);"
        "create table odd (tags text[], twins pair, span int4range, at timestamptz, id uuid);"
    )
    asyncio.run(_opened(Estate(estate.database, migrations=more)))
    with psycopg.connect(estate.database) as connection:
        connection.execute(
            "insert into odd values (array['a,b', null, '\"'], (1, null), '[1,5)', '2026-11-15 09:30:00.123456+02', "
            "'019a8c3e-7f00-7abc-8def-0123456789ab')"
        )
    there = Estate(new_database("postgres"), migrations=more)

    assert saved(terminal, estate.database, tmp_path / "backup.db").code == 0
    said = restored(terminal, tmp_path / "backup.db", there, tmp_path)

    assert said.code == 0, said.err
    query = "select tags, cast(twins as text), cast(span as text), at, cast(id as text) from odd"
    assert rows(there.database, query) == rows(estate.database, query) != []


async def _opened(estate: Estate) -> None:
    async with estate.app:
        pass


@BOTH
def test_nothing_is_restored_over_what_is_there(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    estate = filled(new_database(dialect))
    file = tmp_path / "backup.db"
    assert saved(terminal, estate.database, file).code == 0
    before = content(estate.database)

    said = restored(terminal, file, estate, tmp_path)
    again = saved(terminal, estate.database, file)

    assert said.code == 1
    assert "already" in said.err or "not empty" in said.err
    assert (again.code, "already" in again.err) == (1, True)
    assert content(estate.database) == before


def test_what_is_no_backup_is_refused(terminal: Terminal, new_database: NewDatabase, tmp_path: Path) -> None:
    there = Estate(new_database("sqlite"))
    (tmp_path / "notes.db").write_text("these are notes, and no database")

    assert restored(terminal, tmp_path / "notes.db", there, tmp_path).code == 3
    assert restored(terminal, tmp_path / "nowhere.db", there, tmp_path).code == 3
    assert terminal("backup", "postgresql://db.example/market").code == 2
    assert not Path(there.database).exists()
