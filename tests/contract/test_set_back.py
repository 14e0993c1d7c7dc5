"""The latest time is noted; a clock behind it is told by how much, and one that was wrong leaves nothing waiting for it."""

from __future__ import annotations

import pytest

from penstock.contracts.timers import ALARM, SetTimer
from tests.contract.inspection import Inspect
from tests.contract.material import ORDERS, SECOND, T0, Desk, message, read_rows, rules
from tests.contract.test_timers import changing, declare

DAY = 86_400 * SECOND


@pytest.mark.fault("F09")
def test_the_report_says_by_how_much_a_clock_is_behind(desk: Desk) -> None:
    behind = desk.workers.behind

    assert behind(now=T0) == 0
    assert behind(now=T0 + 10 * SECOND) == 0
    assert behind(now=T0 + 4 * SECOND) == 6 * SECOND
    assert behind(now=T0 + 4 * SECOND) == 6 * SECOND, "an earlier time was noted"
    assert behind(now=T0 + 11 * SECOND) == 0


@pytest.mark.fault("F09")
def test_while_anything_is_metered_the_time_is_noted(desk: Desk) -> None:
    desk.upkeep.add_usage("2026-09", [], now=T0 + 5 * SECOND)

    assert desk.workers.behind(now=T0) == 5 * SECOND


@pytest.mark.fault("F09")
def test_who_leaves_notes_the_time(desk: Desk, neighbour: Desk) -> None:
    neighbour.workers.retire(neighbour.me, now=T0 + 5 * SECOND)

    assert desk.workers.behind(now=T0) == 5 * SECOND


@pytest.mark.fault("F09")
def test_what_a_wrong_clock_made_wait_is_due_that_much_sooner(desk: Desk, inspect: Inspect) -> None:
    ahead = T0 + 365 * DAY
    desk.workers.register_queues([rules()])
    declare(desk, since=T0)
    desk.send(message(due=ahead + 60 * SECOND), message(due=ahead - 60 * SECOND), message(due=T0 - SECOND))
    desk.commit(changing(SetTimer(ALARM, "Clock/a", ahead + 30 * SECOND, "object.Clock", "object.alarm")))
    desk.upkeep.sample_size(now=ahead)
    schedule = "select due from penstock_timers where kind = 'cron'"
    next_fire = read_rows(desk.store, schedule)
    desk.workers.behind(now=ahead)

    assert desk.workers.behind(now=T0, most=400 * DAY) == 365 * DAY
    assert max(row.due for row in inspect.messages()) == ahead + 60 * SECOND, "moved although it may be that far behind"

    assert desk.workers.behind(now=T0, most=DAY) == 365 * DAY
    assert sorted(row.due - T0 for row in inspect.messages()) == [-SECOND, 0, 60 * SECOND]
    assert read_rows(desk.store, "select due from penstock_timers where kind = 'alarm'") == [(T0 + 30 * SECOND,)]
    assert read_rows(desk.store, schedule) == next_fire
    assert read_rows(desk.store, "select at from penstock_sizes") == []
    assert desk.workers.behind(now=T0, most=DAY) == 0
    assert {row.queue for row in inspect.messages()} == {ORDERS}
