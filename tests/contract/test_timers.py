"""Timers: each due time becomes one message in the commit that moves it on, whoever of several writers looks."""

from __future__ import annotations

import pytest

from penstock.contracts.ledger import Committed
from penstock.contracts.store import Store
from penstock.contracts.timers import ALARM, CRON, ClearTimer, Declared, SetTimer, TickNote, TimerChange
from penstock.model.firing import FiringRule
from penstock.model.schedule import CatchUp, Overlap
from tests.contract.inspection import Inspect
from tests.contract.material import SECOND, T0, Desk, Sheet, read_rows, sheet, want

MINUTE = 60 * SECOND
BEGIN = T0 // MINUTE * MINUTE
QUEUE = "cron.crawl"


def declare(
    desk: Desk,
    expression: str = "* * * * *",
    *,
    catch_up: CatchUp = "once",
    overlap: Overlap = "allow",
    since: int = BEGIN,
) -> None:
    rule = FiringRule(expression=expression, catch_up=catch_up, overlap=overlap)
    due = rule.schedule().next_after(since)
    desk.writer.timers.declare([Declared("crawl", rule.text(), since, due, QUEUE)])


def fire(desk: Desk, now: int) -> Committed:
    return desk.ledger.commit([], [], now=now, sweep=False, fire=True)


def changing(*changes: TimerChange) -> Sheet:
    return sheet(*changes)


def alarm(name: str, due: int) -> SetTimer:
    return SetTimer(ALARM, f"Clock/{name}", due, "object.Clock", "object.alarm")


def ticks(store: Store) -> list[tuple[str, str, int]]:
    found = read_rows(store, "select schedule, status, due from penstock_ticks order by due")
    return [(name, status, (due - BEGIN) // MINUTE) for name, status, due in found]


@pytest.mark.fault("F05", "F12")
def test_two_writers_that_look_at_the_same_time_fire_once(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    declare(desk)
    declare(neighbour)
    for number in range(1, 51):
        for writer in (desk, neighbour, desk):
            fire(writer, BEGIN + number * MINUTE)
    assert len(inspect.messages()) == 50
    assert [minute for _, _, minute in ticks(desk.store)] == list(range(1, 51))


def test_what_is_not_due_does_not_fire_and_the_next_time_is_reported(desk: Desk, inspect: Inspect) -> None:
    declare(desk)
    committed = fire(desk, BEGIN + 30 * SECOND)
    assert (committed.next_timer, committed.is_empty, inspect.messages()) == (BEGIN + MINUTE, True, [])


@pytest.mark.spec("A4-05")
def test_a_fire_that_finds_a_run_is_noted_as_skipped_although_nothing_else_is_committed(
    desk: Desk, inspect: Inspect
) -> None:
    declare(desk, overlap="skip")
    fire(desk, BEGIN + MINUTE)
    committed = fire(desk, BEGIN + 2 * MINUTE)
    assert not committed.is_empty
    assert ticks(desk.store) == [("crawl", "due", 1), ("crawl", "skipped", 2)]
    assert len(inspect.messages()) == 1
    [row] = desk.writer.timers.listed(CRON)
    assert (row.due, row.number) == (BEGIN + 3 * MINUTE, 2)


@pytest.mark.fault("F11")
@pytest.mark.parametrize("catch_up, hours", [("once", [10]), ("skip", []), ("all", list(range(1, 11)))])
@pytest.mark.parametrize("overlap", ["skip", "queue", "allow"])
def test_after_an_outage_as_much_is_made_up_for_as_was_asked(
    desk: Desk, catch_up: CatchUp, hours: list[int], overlap: Overlap
) -> None:
    midnight = T0 // (24 * 60 * MINUTE) * 24 * 60 * MINUTE
    declare(desk, "0 * * * *", catch_up=catch_up, overlap=overlap, since=midnight)
    for _ in range(2):
        fire(desk, midnight + (10 * 60 + 5) * MINUTE)
    fired = read_rows(desk.store, "select due from penstock_ticks where status = 'due' order by due")
    assert [(due - midnight) // (60 * MINUTE) for (due,) in fired] == hours
    [row] = desk.writer.timers.listed(CRON)
    assert row.due == midnight + 11 * 60 * MINUTE


def test_a_schedule_that_is_as_it_was_keeps_its_time_and_a_changed_one_begins_anew(desk: Desk) -> None:
    declare(desk, "0 * * * *")
    [before] = desk.writer.timers.listed(CRON)
    declare(desk, "0 * * * *", since=BEGIN + 3 * SECOND)
    assert desk.writer.timers.listed(CRON) == [before]
    declare(desk, "30 * * * *", since=BEGIN + 3 * SECOND)
    [after] = desk.writer.timers.listed(CRON)
    assert after.due != before.due


def test_a_time_that_came_from_a_clock_ahead_is_not_waited_for(desk: Desk, inspect: Inspect) -> None:
    declare(desk, since=BEGIN + 365 * 24 * 60 * MINUTE)
    declare(desk, since=BEGIN)
    for number in range(1, 4):
        fire(desk, BEGIN + number * MINUTE)
    assert len(inspect.messages()) >= 2


def test_a_paused_schedule_does_not_fire(desk: Desk, inspect: Inspect) -> None:
    declare(desk)
    timers = desk.writer.timers
    assert timers.pause("crawl", paused=True)
    fire(desk, BEGIN + 5 * MINUTE)
    assert inspect.messages() == []
    assert timers.pause("crawl", paused=False, since=BEGIN + 5 * MINUTE, due=BEGIN + 6 * MINUTE)
    fire(desk, BEGIN + 6 * MINUTE)
    assert ticks(desk.store) == [("crawl", "due", 6)]
    assert not timers.pause("nobody", paused=True)


def test_a_schedule_that_is_triggered_fires_now_although_it_runs_and_keeps_its_time(
    desk: Desk, inspect: Inspect
) -> None:
    declare(desk, overlap="skip")
    assert desk.writer.timers.trigger("crawl", now=BEGIN + 1)
    assert desk.writer.timers.trigger("crawl", now=BEGIN + 2)
    assert not desk.writer.timers.trigger("nobody", now=BEGIN)
    assert len(inspect.messages()) == 2
    [row] = desk.writer.timers.listed(CRON)
    assert row.due == BEGIN + MINUTE


def test_the_end_of_a_run_is_noted_with_its_effects(desk: Desk) -> None:
    declare(desk)
    fire(desk, BEGIN + MINUTE)
    note = TickNote("crawl", BEGIN + MINUTE, "failed", BEGIN + MINUTE, BEGIN + MINUTE + 5, 7, "OSError: no", "fetching")
    desk.commit(changing(note))
    [row] = read_rows(desk.store, "select status, rows_read, error, phase, finished_at from penstock_ticks")
    assert row == ("failed", 7, "OSError: no", "fetching", BEGIN + MINUTE + 5)


@pytest.mark.spec("A5-07")
def test_an_alarm_that_is_set_again_moves_and_fires_once(desk: Desk, inspect: Inspect) -> None:
    desk.commit(changing(alarm("a", T0 + 10), alarm("a", T0 + 20), alarm("b", T0 + 5)))
    desk.commit(changing(ClearTimer(ALARM, "Clock/b")))
    assert fire(desk, T0 + 10).next_timer == T0 + 20
    assert inspect.messages() == []
    assert fire(desk, T0 + 20).next_timer is None
    fire(desk, T0 + 30)
    [message] = inspect.messages()
    assert (message.queue, b"Clock/a" in message.body) == ("object.Clock", True)


def test_an_alarm_for_the_same_moment_as_one_that_is_under_way_is_another(desk: Desk, inspect: Inspect) -> None:
    for _ in range(2):
        desk.commit(changing(alarm("a", T0)))
        fire(desk, T0)
    assert len({message.id for message in inspect.messages()}) == 2


@pytest.mark.spec("A5-17")
def test_more_timers_than_one_commit_takes_all_fire(desk: Desk, inspect: Inspect) -> None:
    desk.commit(changing(*(alarm(str(number), T0) for number in range(1_200))))
    looks = 0
    while fire(desk, T0).next_timer is not None:
        looks += 1
    assert looks == 2
    assert len(inspect.messages()) == 1_200


def test_what_fires_can_be_claimed_in_the_same_commit(desk: Desk) -> None:
    declare(desk)
    committed = desk.ledger.commit([], [want(QUEUE)], now=BEGIN + MINUTE, sweep=False, fire=True)
    [delivery] = committed.claimed
    assert (delivery.type, delivery.queue) == ("cron.tick", QUEUE)


@pytest.mark.spec("A4-17")
def test_the_run_log_is_kept_for_ninety_days_and_goes_in_portions(desk: Desk) -> None:
    declare(desk)
    for number in range(1, 21):
        fire(desk, BEGIN + number * MINUTE)
    days = 86_400 * SECOND

    assert desk.upkeep.prune(now=BEGIN + 90 * days, limit=5) == 0
    assert desk.upkeep.prune(now=BEGIN + 90 * days + 16 * MINUTE, limit=7) == 7
    assert [minute for _, _, minute in ticks(desk.store)] == list(range(8, 21))
    assert desk.upkeep.prune(now=BEGIN + 90 * days + 16 * MINUTE, limit=100) == 8
    assert [minute for _, _, minute in ticks(desk.store)] == list(range(16, 21))


def test_schedules_that_no_code_declares_any_more_are_removed_and_fire_no_more(desk: Desk, inspect: Inspect) -> None:
    rule = FiringRule(expression="* * * * *", catch_up="once", overlap="allow")
    due = rule.schedule().next_after(BEGIN)
    desk.writer.timers.declare([Declared(name, rule.text(), BEGIN, due, QUEUE) for name in ("crawl", "gone", "prune")])

    desk.writer.timers.keep_only(["crawl", "prune", "never declared"])
    fire(desk, BEGIN + MINUTE)

    assert sorted(row.name for row in desk.writer.timers.listed(CRON)) == ["crawl", "prune"]
    assert sorted(name for name, _, _ in ticks(desk.store)) == ["crawl", "prune"]
    assert len(inspect.messages()) == 2
