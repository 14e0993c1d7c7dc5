"""A long backlog: a claim costs the same beside two hundred thousand rows as beside a thousand, in steps of the database's
own machine and not in time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import pytest

from penstock.storage.sqlite.store import SqliteStore, SqliteWriter
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import SqliteInspect, check_conservation
from tests.contract.material import SECOND, Desk, done, message, rules, want

pytestmark = pytest.mark.fault("F25")

SMALL, LARGE = 1_000, 200_000
CLAIMS = 20
HOUR = 3_600 * SECOND


class Steps:
    """Counts the steps of every statement of one connection."""

    def __init__(self) -> None:
        self.taken = 0

    def note(self, event: dict[str, Any]) -> None:
        self.taken += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]


@contextmanager
def steps_of(desk: Desk) -> Iterator[Steps]:
    assert isinstance(desk.writer, SqliteWriter)
    connection = desk.writer._session.connection
    steps = Steps()
    connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, steps.note, id=steps)
    yield steps
    connection.trace_v2(0, None, id=steps)


def fill(desk: Desk, rows: int, random: Random) -> None:
    """Half of it is delayed and stands at the head of its queue by the time it was sent; a quarter is paused."""
    desk.workers.register_queues([rules("busy"), rules("paused")])
    for start in range(0, rows, 10_000):
        desk.send(
            *(
                message(
                    queue="paused" if number % 4 == 3 else "busy",
                    priority=random.randrange(3),
                    due=desk.now + HOUR + random.randrange(HOUR) if number % 2 else desk.now - random.randrange(HOUR),
                )
                for number in range(start, min(rows, start + 10_000))
            )
        )


def claim_steps(desk: Desk) -> int:
    """What so many claims of ten, each with its settlements and a sweep, cost together."""
    with steps_of(desk) as steps:
        for _ in range(CLAIMS):
            committed = desk.commit(wants=[want("busy", 10), want("paused", 10), want("empty", 10)], sweep=True)
            assert [delivery.queue for delivery in committed.claimed] == ["busy"] * 10
            desk.commit(*map(done, committed.claimed))
    return steps.taken


@pytest.fixture(scope="module")
def cost(tmp_path_factory: pytest.TempPathFactory, seed: int) -> dict[int, int]:
    found = {}
    for rows in (SMALL, LARGE):
        path: Path = tmp_path_factory.mktemp("backlog") / f"{rows}.db"
        inspect = SqliteInspect(path)
        with at_a_desk(SqliteStore(path, synchronous="off", metered=False)) as desk:
            fill(desk, rows, Random(seed))
            inspect.pause("paused")
            found[rows] = claim_steps(desk)
        check_conservation(inspect)
    return found


def test_a_claim_costs_the_same_at_any_length(cost: dict[int, int], note: Callable[[str], None]) -> None:
    note(
        f"F25: {CLAIMS} claims of 10 with their settlements take {cost[SMALL]:,} steps beside {SMALL:,} rows and "
        f"{cost[LARGE]:,} beside {LARGE:,}"
    )
    assert cost[LARGE] <= cost[SMALL] * 1.25


def test_the_steps_that_are_counted_are_those_of_the_rows(cost: dict[int, int]) -> None:
    """The control: a walk over the backlog would take at least a step for each of its rows."""
    assert cost[SMALL] > 100 * CLAIMS
    assert cost[LARGE] < LARGE


def test_a_delayed_head_is_not_walked(tmp_path: Path) -> None:
    """Everything is delayed: a claim of nothing costs a handful of probes."""
    with at_a_desk(SqliteStore(tmp_path / "delayed.db", synchronous="off", metered=False)) as desk:
        desk.send(*(message(queue="busy", due=desk.now + HOUR + number) for number in range(20_000)))
        with steps_of(desk) as steps:
            committed = desk.commit(wants=[want("busy", 100)])

    assert committed.claimed == []
    assert committed.next_due == {"busy": desk.now + HOUR}
    assert steps.taken < 500
