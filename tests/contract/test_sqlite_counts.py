"""On SQLite: kept counts and the ways of writing that only SQLite has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.storage.sqlite.store import SqliteStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import SqliteInspect
from tests.contract.material import NEW_ITEM, Desk, read_rows, sheet


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Desk]:
    with at_a_desk(SqliteStore(tmp_path / "counted.db", synchronous="off", reserve_bytes=100_000)) as desk:
        desk.open_shop()
        desk.upkeep.keep_counts(["shop"])
        unit = sheet()
        unit.write_many(NEW_ITEM, [{"id": number, "name": "old"} for number in range(3)])
        desk.commit(unit)
        yield desk


@pytest.mark.parametrize(
    "sql",
    [
        "insert or ignore into shop (id, name) values (1, 'new'), (9, 'new')",
        "update or replace shop set id = 9 where id = 1",
        "insert or replace into shop (id, name) values (1, 'new'), (9, 'new')",
    ],
)
def test_a_kept_count_stays_right(counted: Desk, tmp_path: Path, sql: str) -> None:
    unit = sheet()
    unit.write(sql)

    counted.commit(unit)

    ((rows,),) = read_rows(counted.store, "select count(*) from shop")
    assert SqliteInspect(tmp_path / "counted.db").kept_count("shop") == rows
