"""Data points go along with the database they belong to: to another store, and into a backup."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import penstock as ps
from tests.moving.conftest import NewDatabase
from tests.moving.content import rows
from tests.unit.cli import Terminal

OTHER = {"sqlite": "postgres", "postgres": "sqlite"}
TABLES = ("points", "sorts", "rolled", "tallies", "samples")
HOSTILE = "\x1b[31m\u202eevil '; --🙂"


async def write(database: str, *numbers: float) -> list[tuple[str, float, float]]:
    """Writes points, and tells what they add up to with those that were there."""
    app = ps.App("shop", database=database, migrations="nowhere")
    points = app.metrics("sales")
    async with app:
        for number in numbers:
            points.write(blobs=("north", HOSTILE), doubles=(number, None, -number), index="eu")
        found = await points.query("select blob2, sum(double1), sum(double3) from points group by blob2")
        [day] = await points.query("select sum(sum) from days where place = 1")
        assert [row[1] for row in found] == [day[0]]
        return [(row[0], row[1], row[2]) for row in found]


def kept(database: str) -> dict[str, list[object]]:
    past = database if "://" in database else f"{database}-history"
    return {table: rows(past, f"select * from penstock_{table}") for table in TABLES}


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_points_arrive_as_they_were_and_more_are_added_to_them(
    dialect: str, terminal: Terminal, new_database: NewDatabase
) -> None:
    here, there = new_database(dialect), new_database(OTHER[dialect])
    asyncio.run(write(here, 1.5, 0.1 + 0.2, 1e-300))
    before = kept(here)

    assert terminal("move", here, there, "--json").code == 0

    assert kept(there) == before
    assert len(before["points"]) == 3
    assert asyncio.run(write(there, 7.0)) == [(HOSTILE, 1.5 + 0.1 + 0.2 + 7.0, -(1.5 + 0.1 + 0.2) - 7.0)]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_points_are_in_a_backup_and_come_back_from_it(
    dialect: str, terminal: Terminal, new_database: NewDatabase, tmp_path: Path
) -> None:
    here, there = new_database(dialect), new_database(dialect)
    asyncio.run(write(here, 1.5, 2.5))
    before = kept(here)
    backup = str(tmp_path / "backup.db")

    assert terminal("backup", backup, "--database", here).code == 0
    assert terminal("restore", backup, "--database", there).code == 0

    assert kept(there) == before
