"""On SQLite: every statement that runs for each group finds its rows through an index, sorts nothing and scans nothing,
also after somebody ran `analyze` on a lopsided database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock.model.outcome import Dead
from penstock.model.sql_files import load_all
from penstock.storage.sqlite.store import SqliteStore
from tests.contract.conftest import at_a_desk
from tests.contract.material import Desk, message, sheet

HOT = ("ledger.", "sends.", "claims.", "dead.", "calls.")
SQL = load_all("penstock.storage.sqlite")
LEDGER = {name: sql for name, sql in SQL.items() if name.startswith(HOT)}
RETURNING = {name: SQL[name] for name in ("workers.held", "ledger.settle_again")}
STATEMENTS = {**LEDGER, **RETURNING}

# A scan of these is a walk over something small by nature: the app's queues, the fence's own list of rows, leased rows.
SMALL = re.compile(
    r"SCAN (CONSTANT ROW|due_now|firsts|penstock_queues|carray .*"
    r"|penstock_messages USING (COVERING )?INDEX penstock_messages_leased)"
)
PARAMETER = re.compile(r":([a-z_]+)")

Plan = list[str]


@pytest.fixture(scope="module", params=["empty", "full"])
def connection(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path = tmp_path_factory.mktemp("plans") / "plans.db"
    with at_a_desk(SqliteStore(path, synchronous="off", reserve_bytes=100_000)) as desk:
        if request.param == "full":
            fill_lopsidedly(desk)
    connection = apsw.Connection(str(path))
    if request.param == "full":
        connection.execute("analyze")
    yield connection
    connection.close()


def fill_lopsidedly(desk: Desk) -> None:
    """One queue with nearly everything, nearly all of it delayed: what an optimizer with statistics may be misled by."""
    desk.send(*(message(due=desk.now + number * 1_000_000_000) for number in range(5_000)))
    desk.send(*(message(queue=f"small-{number}", priority=number % 3) for number in range(20)))
    for number in range(20):
        for delivery in desk.claim(queue=f"small-{number}")[:-1]:
            desk.settle(delivery, Dead("discarded"))
    desk.commit(*(sheet(once=f"key {number}") for number in range(500)))


def plan(connection: apsw.Connection, sql: str) -> Plan:
    bindings: Any = dict.fromkeys(PARAMETER.findall(sql)) if ":" in sql else (None,) * sql.count("?")
    explained = connection.execute(f"explain query plan {sql}", bindings)
    return [str(detail) for _, _, _, detail in explained]


@pytest.mark.fault("F25")
@pytest.mark.spec("A8-15")
@pytest.mark.parametrize("name", STATEMENTS)
def test_nothing_is_sorted_and_nothing_is_scanned(connection: apsw.Connection, name: str) -> None:
    steps = plan(connection, STATEMENTS[name])

    # The workers of lapsed rows are told apart: both are few, and a sweep looks for them only when a lease has ended.
    assert not [step for step in steps if "TEMP B-TREE" in step and name != "claims.lapsed"]
    assert not [step for step in steps if step.startswith("SCAN") and not SMALL.match(step)]
    assert not [step for step in steps if "AUTOMATIC" in step]


WAITING = [name for name, sql in LEDGER.items() if "worker is null" in sql and "expires is not null" not in sql]
LEASED = [name for name, sql in STATEMENTS.items() if "worker is not null" in sql]


@pytest.mark.fault("F25")
@pytest.mark.parametrize("name", WAITING)
def test_waiting_rows_are_probed_by_queue_and_priority(connection: apsw.Connection, name: str) -> None:
    steps = [step for step in plan(connection, LEDGER[name]) if "penstock_messages" in step and "rowid" not in step]

    assert steps
    for step in steps:
        assert re.search(r"SEARCH .* INDEX penstock_messages_waiting \(queue=\? AND priority=\?", step), step
    if ":now" in LEDGER[name]:
        assert any("due<?" in step for step in steps)


@pytest.mark.parametrize("name", LEASED)
def test_leased_rows_are_found_through_their_own_tiny_index(connection: apsw.Connection, name: str) -> None:
    steps = plan(connection, STATEMENTS[name])

    assert any("penstock_messages_leased" in step for step in steps)


def test_the_rules_apply_to_something() -> None:
    assert len(WAITING) >= 2
    assert len(LEASED) >= 3


@pytest.mark.parametrize(
    "sql",
    [
        "select seq from penstock_messages where body = ?",
        "select seq from penstock_messages order by sent_at",
        "select seq from penstock_messages where queue = ? and priority >= ? and worker is null order by due",
    ],
)
def test_a_bad_plan_is_noticed(connection: apsw.Connection, sql: str) -> None:
    """The rules above can fail."""
    steps = plan(connection, sql)

    assert [step for step in steps if "TEMP B-TREE" in step or (step.startswith("SCAN") and not SMALL.match(step))]


def test_the_waiting_index_holds_only_what_waits(tmp_path: Path) -> None:
    """A row that is claimed leaves it: otherwise every claim would step over what others hold."""
    path = tmp_path / "index.db"
    with at_a_desk(SqliteStore(path, synchronous="off", reserve_bytes=100_000)) as desk:
        desk.send(*(message() for _ in range(10)))
        desk.claim(4)
        connection = apsw.Connection(str(path))
        try:
            found = [
                connection.execute(f"select count(*) from penstock_messages indexed by {index} where {rows}").fetchall()
                for index, rows in (
                    ("penstock_messages_waiting", "worker is null"),
                    ("penstock_messages_leased", "worker is not null"),
                )
            ]
        finally:
            connection.close()

    assert found == [[(6,)], [(4,)]]
