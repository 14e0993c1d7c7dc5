"""A database that 0.1.0 left behind, with a worker killed at work, opens in this version and everything continues."""

from __future__ import annotations

import shutil
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from penstock.storage.postgres import presence
from penstock.testing import TestApp
from tests.postgres import server
from tests.upgrade.shop import DEAD, Order, Shop, Verdict

HERE = Path(__file__).parent
LEFT_AT = datetime(2026, 11, 18, 14, 3, tzinfo=UTC)  # a minute after the worker of 0.1.0 was killed
PACE = 3.696  # requests a second, found by 0.1.0
LATER = datetime(2026, 11, 19, 4, 0, 30, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str:
    kept: str = request.param
    return kept


@pytest.fixture
def database(store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of what 0.1.0 left behind."""
    if store == "postgres":
        monkeypatch.setattr(presence, "AWAY_SECONDS", 0.0)  # the server that held their locks is another one
        url = server().new_database()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute((HERE / "0.1.postgres.sql").read_bytes())
        return url
    for name in ("shop.db", "shop.db-history"):
        shutil.copy(HERE / name.replace("shop", "0.1"), tmp_path / name)
    for worker in (1, 2):  # the files that killed processes leave behind, of which nothing can be read
        (tmp_path / f"shop.db-worker-{worker}").write_bytes(b"\0")
    return str(tmp_path / "shop.db")


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def opened(shop: Shop, database: str) -> TestApp:
    return TestApp(shop.app, start=LEFT_AT, database=database)


@pytest.fixture
def passed_trial(database: str) -> None:
    """Write what `penstock trial` of 0.1.0 wrote."""
    row = ("Remembered", "penstock.trial", b'{"pace":{"passed_at":"2026-11-18 13:00:00"}}', 1, 0, 0)
    columns = "(class, name, state, epoch, created_at, saved_at)"
    if database.startswith("postgresql"):
        with psycopg.connect(database, autocommit=True) as server_connection:
            server_connection.execute(
                f"insert into penstock.penstock_objects {columns} values (%s, %s, %s, %s, %s, %s)", row
            )
        return
    with sqlite3.connect(database) as connection:
        connection.execute(f"insert into penstock_objects {columns} values (?, ?, ?, ?, ?, ?)", row)
    connection.close()


async def test_waiting_delayed_leased_and_failing_messages_are_delivered_once(opened: TestApp, shop: Shop) -> None:
    await opened.advance(hours=2)

    shipped = [row.item for row in await shop.app.db.rows("select item from shipped order by item")]
    assert shipped == ["delayed", "failing", "held", "shipped", "unique", "waiting"]
    assert sorted(set(shop.noted) & set(shipped)) == ["delayed", "failing", "held", "waiting"]
    await opened.send(shop.orders, Order(item="unique"), unique="order 1")
    await opened.drain()
    assert "unique" not in shop.noted


async def test_dead_letters_are_listed_and_can_be_replayed(opened: TestApp, shop: Shop) -> None:
    first, second = await shop.app.dead.list()
    assert (first.error_class, first.error_message, second.reason) == ("Gone", DEAD, "permanent")

    await shop.app.dead.replay(first.id)
    await opened.drain()

    assert any(item.startswith("dead") for item in shop.noted)
    assert len(await opened.dead(shop.orders)) == 1


async def test_runs_continue_where_they_waited(opened: TestApp, shop: Shop) -> None:
    assert await shop.approval["done"].result() == "done approved"
    assert (await shop.approval["waits"].status()).steps[-1].name == "verdict"
    async with opened.unit():
        shop.approval["waits"].signal("verdict", Verdict(ok=True))

    await opened.advance(hours=2, seconds=5)

    assert await shop.approval["asleep"].result() == "asleep refused"
    assert await shop.approval["waits"].result() == "waits approved"
    assert not any(each.startswith("asked") for each in shop.noted)


async def test_alarms_and_cron_tasks_fire_and_the_pace_is_remembered(opened: TestApp, shop: Shop) -> None:
    async with shop.pace.permit():
        assert shop.pace.rate_per_second == pytest.approx(PACE, abs=0.01)

    await opened.advance(seconds=(LATER - opened.now).total_seconds())

    assert await shop.tills["main"].add() == 102
    assert shop.noted.count("swept") == 1


@pytest.mark.usefixtures("passed_trial")
async def test_a_trial_that_passed_counts_and_is_no_pace(opened: TestApp, shop: Shop) -> None:
    assert await shop.app.trial.has_passed()
    assert await shop.app.trial.record().read() == "2026-11-18 13:00:00"
    engine = await shop.app._opened()
    paces = await engine.read(
        "", "select name from penstock_objects where class = 'Remembered' limit 9", {}, rows_max=9
    )
    assert paces.values == [("stripe.test",)]


async def test_a_trial_that_did_not_pass_does_not_count(opened: TestApp, shop: Shop) -> None:
    assert not await shop.app.trial.has_passed()
