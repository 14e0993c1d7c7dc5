"""What is read for many listings: few statements, each by an index."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.data.database import Database
from penstock.testing import virtual
from penstock_systems.rentals import homes, listings, lookups, noticing, reading
from penstock_systems.rentals.app import db
from tests.systems.rentals.conftest import Portals, item

MIGRATIONS = Path(homes.__file__).parent / "migrations"
KEYED = {"of a page": listings.FIND, "of a message": homes.FIND, "splits": homes.SPLITS, "hidden": noticing.HIDDEN}
REPEATED = {"cells": homes.NEAR, "addresses": homes.AT, "of homes": homes.OF_HOME}
ALONE = (noticing.LAST, noticing.KNOWN, reading.LINKS, reading.VERSIONS, homes.FORGET_KNOWN, homes.FORGET_SPLIT)


@pytest.fixture
def tables() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "create table source_records (source_id, item_id, url, raw_json, content_hash, fetched_at, last_seen_at)"
    )
    for path in sorted(MIGRATIONS.glob("*.sql")):
        connection.executescript(path.read_text("utf-8"))
    return connection


@pytest.mark.parametrize(
    "sql",
    [
        *(lookups._with_keys(sql) for sql in KEYED.values()),
        *(lookups._repeated(sql, 10) for sql in REPEATED.values()),
        *ALONE,
        listings.OLD_HOLDS,
    ],
)
def test_what_is_looked_up_goes_by_an_index(tables: sqlite3.Connection, sql: str) -> None:
    given = dict.fromkeys(re.findall(r"(?<!:):(\w+)", sql), "1")
    plan = [row[3] for row in tables.execute(f"explain query plan {sql}", given)]
    walked = [step for step in plan if step.startswith("SCAN ") and "CONSTANT" not in step and "part_" not in step]
    assert [step for step in walked if "INDEX" not in step] == [], plan
    assert len(given) <= 100, "a database may take no more"
    tables.close()


def test_a_map_is_read_cell_by_cell_and_not_from_one_end_to_the_other(tables: sqlite3.Connection) -> None:
    given = dict.fromkeys(("south", "lat", "north", "west", "east"), 1)
    [search, *_] = [row[3] for row in tables.execute(f"explain query plan {homes.NEAR}", given)]
    assert "(bucket_lat=? AND bucket_lon>? AND bucket_lon<?)" in search
    tables.close()


@virtual
async def test_the_statements_of_a_page_do_not_grow_with_its_listings(
    portals: Portals, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = {lookups._with_keys(sql): name for name, sql in KEYED.items()}
    named |= {lookups._repeated(sql, lookups.PARTS_A_STATEMENT): name for name, sql in REPEATED.items()}
    named |= {lookups._repeated(noticing.KNOWN, noticing.HOMES_A_STATEMENT): "known", noticing.LAST: "last"}
    read: Counter[str] = Counter()
    rows = Database.rows

    async def counting(given: Database, sql: str, *bound: Any, **values: Any) -> Any:
        read[named.get(sql, "others")] += 1
        return await rows(given, sql, *bound, **values)

    monkeypatch.setattr(Database, "rows", counting)
    async with portals.running:
        await portals.search("all", max_price=2_000)
        portals.items["one"] = [item(f"a{n}", lat=40 + n / 50, street=f"Ring {n}") for n in range(40)]
        await portals.collect()
        del read["others"]
        assert read == {"of a page": 1, "of a message": 1, "splits": 1, "cells": 4, "addresses": 4}
        read.clear()
        portals.items["one"] = [each | {"price": 900} for each in portals.items["one"]]
        await portals.collect()
        del read["others"]
        assert read == {"of a page": 1, "of a message": 1, "of homes": 4, "hidden": 1, "known": 10}
        assert await db.value("select count(*) from notices where reason = 'cheaper'") == 40


@virtual
async def test_more_keys_than_a_statement_has_are_read_in_several(portals: Portals) -> None:
    portals.items["one"] = [item(f"a{n}", lat=40 + n / 50, street=f"Ring {n}") for n in range(95)]
    async with portals.running:
        await portals.collect()
        ids = [f"one:a{n}" for n in range(95)]
        assert sorted(row.id for row in await lookups.rows_of(homes.FIND, ids)) == sorted(ids)
        found = await lookups.rows_of_each(homes.OF_HOME, [{"home": id} for id in ids])
        assert [row.home_id for row in found] == ids
        assert await lookups.rows_of(homes.FIND, []) == await lookups.rows_of_each(homes.OF_HOME, []) == []
