"""The tables of the pipeline: all there, all keyed, on both stores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock_systems.appstore import app as shared
from tests.systems.appstore.conftest import Opened

MIGRATIONS = Path(shared.__file__).parent / "migrations"
CREATED = re.compile(r"create table (\w+) \((.*?)\n\);", re.DOTALL)


@pytest.mark.spec("B8-T01", "G2-13", "A8-09")
async def test_the_migrations_apply_and_apply_no_second_time(pipeline: Opened) -> None:
    async with pipeline() as it:
        assert await it.sql("select track_id from app_registry") == []
        assert await shared.db.count("app_registry") == 0
    async with pipeline() as it:
        assert await it.sql("select keyword from crawl_keywords") == []


def test_every_table_has_a_key_that_makes_a_second_insert_harmless() -> None:
    for path in sorted(MIGRATIONS.glob("*.sql")):
        for name, body in CREATED.findall(path.read_text("utf-8")):
            assert "primary key" in body, f"{path.name}: {name} has no primary key"
