"""Runs of workflows in the store: begun once, advanced under the fence of their message, woken by signals, ended."""

from __future__ import annotations

import pytest

from penstock.contracts.ledger import StaleUnits
from penstock.contracts.runs import (
    EndRun,
    NewRun,
    NewSignal,
    ParkRun,
    Progress,
    RunChange,
    RunRow,
    Suspend,
    TakeSignal,
)
from penstock.model.errors import NoSuchRun
from penstock.model.message import Delivery
from penstock.model.outcome import DONE, Again
from penstock.model.run import NEVER_SECONDS, StepRecord, key_of, queue_of
from tests.contract.material import SECOND, T0, Desk, Sheet, message, read_rows, sheet

FLOW = "flow"
QUEUE = queue_of(FLOW)
KEPT = 86_400.0


def new(id: str = "one", *, parent: str | None = None, step: str | None = None, input: bytes = b"{}") -> NewRun:
    key = key_of(FLOW, id)
    above = None if parent is None else key_of(FLOW, parent)
    return NewRun(key, FLOW, id, input, above, step, message(b'{"run":"one"}', queue=QUEUE, id=key))


def changing(*changes: RunChange, delivery: Delivery | None = None, settlement: Again | None = None) -> Sheet:
    return sheet(*changes, delivery=delivery, settlement=settlement)


def ending(delivery: Delivery, state: str = "complete", result: bytes | None = b"7") -> Sheet:
    return sheet(EndRun(delivery.id, state, result, None, KEPT), delivery=delivery, settlement=DONE)


def step(key: bytes, position: int, name: str, state: str = "done", attempts: int = 1, **more: object) -> StepRecord:
    facts: dict[str, object] = {"ended_at": T0, "result": b"1"} | more
    return StepRecord(key, position, name, "step", state, attempts, T0, **facts)  # type: ignore[arg-type]


def begun(desk: Desk, id: str = "one", *, parent: str | None = None, step: str | None = None) -> Delivery:
    desk.commit(changing(new(id, parent=parent, step=step)))
    return desk.claim_one(QUEUE)


def row(desk: Desk, id: str = "one") -> RunRow:
    found = desk.writer.runs.find(key_of(FLOW, id), now=desk.now)
    assert found is not None
    return found


def names(desk: Desk, id: str = "one") -> list[tuple[str, str]]:
    return [(each.name, each.state) for each in desk.writer.runs.steps(key_of(FLOW, id))]


# -- beginning and ending ---------------------------------------------------------------------------------------------


def test_a_run_begins_with_its_message_and_ends_with_it(desk: Desk) -> None:
    committed = desk.commit(changing(new(input=b'{"n":1}')))
    assert committed.waiting == {QUEUE: T0}
    assert (row(desk).state, row(desk).input, row(desk).due) == ("queued", b'{"n":1}', T0)
    delivery = desk.claim_one(QUEUE)
    assert (delivery.id, delivery.before) == (key_of(FLOW, "one"), 0)
    assert row(desk).state == "running"
    desk.commit(ending(delivery))
    ended = row(desk)
    assert (ended.state, ended.result, ended.ended_at, ended.due) == ("complete", b"7", T0, None)


def test_a_second_beginning_under_one_id_changes_nothing_whether_the_first_has_ended_or_not(
    desk: Desk, neighbour: Desk
) -> None:
    desk.commit(changing(new(input=b"1"), new(input=b"2")), changing(new(input=b"3")))
    neighbour.commit(changing(new(input=b"4"), new("two")))
    assert row(desk).input == b"1"
    first, second = desk.claim(10, QUEUE)
    assert {first.id, second.id} == {key_of(FLOW, "one"), key_of(FLOW, "two")}
    desk.commit(ending(first), ending(second))
    desk.commit(changing(new(input=b"5")))
    assert row(desk).input == b"1"
    assert desk.claim(10, QUEUE) == []


def test_many_runs_begin_and_end_in_one_commit(desk: Desk) -> None:
    desk.commit(*(changing(new(f"run {number}")) for number in range(173)))
    deliveries = desk.claim(200, QUEUE)
    assert len(deliveries) == 173
    desk.commit(*(changing(step(each.id, 0, "a"), step(each.id, 1, "b"), delivery=each) for each in deliveries))
    desk.commit(*(ending(each) for each in deliveries))
    assert len(desk.writer.runs.listed(FLOW, "complete", now=desk.now, limit=1_000)) == 173
    assert names(desk, "run 172") == [("a", "done"), ("b", "done")]


def test_a_claim_says_whether_the_row_was_claimed_before(desk: Desk, neighbour: Desk) -> None:
    delivery = begun(desk)
    assert delivery.before == 0
    desk.settle(delivery, Again(0.0, charged=False))
    again = neighbour.claim_one(QUEUE)
    assert again.before > 0
    neighbour.settle(again, Again(0.0, charged=False))
    assert desk.claim_one(QUEUE).before > 0


# -- steps ------------------------------------------------------------------------------------------------------------


def test_a_step_is_noted_under_the_fence_of_its_run(desk: Desk, neighbour: Desk) -> None:
    delivery = begun(desk)
    desk.commit(changing(step(delivery.id, 0, "a"), delivery=delivery))
    desk.settle(delivery, Again(0.0, charged=False))
    taken = neighbour.claim_one(QUEUE)
    stale = changing(step(delivery.id, 1, "stale"), delivery=delivery)
    with pytest.raises(StaleUnits) as raised:
        desk.commit(stale)
    assert raised.value.stale == [stale]
    neighbour.commit(changing(step(delivery.id, 1, "b"), delivery=taken))
    assert names(desk) == [("a", "done"), ("b", "done")]


def test_a_step_that_was_tried_is_noted_over_whatever_was_noted_of_it(desk: Desk) -> None:
    delivery = begun(desk)
    tried = step(delivery.id, 0, "a", "retrying", 0, ended_at=None, result=None, due=T0 + SECOND, error="E: slow")
    desk.commit(changing(tried, delivery=delivery))
    assert desk.writer.runs.steps(delivery.id) == [tried]
    done = step(delivery.id, 0, "a")  # the first try that was charged: nothing tells it from one that is new
    desk.commit(changing(done, step(delivery.id, 1, "b"), delivery=delivery))
    assert desk.writer.runs.steps(delivery.id) == [done, step(delivery.id, 1, "b")]


def test_steps_and_users_writes_of_a_unit_are_saved_together_or_not_at_all(desk: Desk) -> None:
    desk.open_shop()
    delivery = begun(desk)
    unit = changing(step(delivery.id, 0, "a"), delivery=delivery)
    unit.write("insert into shop (id, name) values (1, 'x')")
    bad = changing(step(delivery.id, 1, "b"), delivery=delivery)
    bad.write("insert into nowhere (id) values (1)")
    with pytest.raises(Exception, match="nowhere"):
        desk.commit(unit, bad)
    assert names(desk) == []
    desk.commit(unit)
    assert names(desk) == [("a", "done")]
    assert read_rows(desk.store, "select id from shop") == [(1,)]


def test_progress_wipes_out_what_the_message_was_charged(desk: Desk) -> None:
    delivery = begun(desk)
    desk.settle(delivery, Again(0.0))
    again = desk.claim_one(QUEUE)
    assert again.attempts == 1
    desk.commit(changing(step(again.id, 0, "a"), Progress(again.seq), delivery=again))
    desk.settle(again, Again(0.0, charged=False))
    assert desk.claim_one(QUEUE).attempts == 0


# -- signals ----------------------------------------------------------------------------------------------------------


def suspended(desk: Desk, delivery: Delivery, *signals: str, pausing: bool = False) -> None:
    waits = Suspend(delivery.id, QUEUE, signals, pausing)
    desk.commit(changing(waits, delivery=delivery, settlement=Again(NEVER_SECONDS, charged=False)))


def test_a_signal_wakes_the_run_that_waits_for_it(desk: Desk, neighbour: Desk) -> None:
    delivery = begun(desk)
    suspended(desk, delivery, "word")
    assert desk.claim(10, QUEUE) == []
    assert row(desk).state == "waiting"
    committed = neighbour.commit(changing(NewSignal(delivery.id, "word", b'"yes"')))
    assert committed.waiting == {QUEUE: neighbour.now}
    again = desk.claim_one(QUEUE)
    (history,) = desk.writer.runs.histories([delivery.id])
    assert history is not None
    ((seq, name, payload),) = history.signals
    assert (name, payload) == ("word", b'"yes"')
    desk.commit(changing(TakeSignal(seq), delivery=again))
    (history,) = desk.writer.runs.histories([delivery.id])
    assert history is not None
    assert history.signals == []


def test_a_run_that_begins_to_wait_finds_a_signal_that_came_before(desk: Desk, neighbour: Desk) -> None:
    delivery = begun(desk)
    neighbour.commit(changing(NewSignal(delivery.id, "word", b"1")))
    assert desk.claim(10, QUEUE) == []  # it is held, and stays so
    suspended(desk, delivery, "other")
    assert desk.claim(10, QUEUE) == []
    neighbour.commit(changing(NewSignal(delivery.id, "third", b"1")))
    delivery = desk.claim_one(QUEUE)  # any signal is worth a look
    suspended(desk, delivery, "other", "word")
    assert desk.claim_one(QUEUE).id == delivery.id


def test_a_signal_to_an_unknown_run_is_refused_and_one_to_an_ended_run_is_dropped(desk: Desk) -> None:
    with pytest.raises(NoSuchRun):
        desk.commit(changing(NewSignal(key_of(FLOW, "nobody"), "word", b"1")))
    delivery = begun(desk)
    desk.commit(ending(delivery))
    desk.commit(changing(NewSignal(delivery.id, "word", b"1")))
    assert read_rows(desk.store, "select count(*) from penstock_signals") == [(0,)]


def test_a_child_that_ends_wakes_its_parent_with_its_result(desk: Desk) -> None:
    parent = begun(desk, "parent")
    child = begun(desk, "child", parent="parent", step="call")
    suspended(desk, parent, "anything")
    desk.commit(ending(child, result=b'{"n":1}'))
    assert desk.claim_one(QUEUE).id == parent.id
    (history,) = desk.writer.runs.histories([parent.id])
    assert history is not None
    (signal,) = history.signals
    assert signal.payload == b'{"state":"complete","result":{"n":1},"error":null}'


# -- operators --------------------------------------------------------------------------------------------------------


def test_a_waiting_run_that_is_paused_is_not_claimed_and_goes_on_when_it_is_resumed(desk: Desk) -> None:
    desk.commit(changing(new()))
    runs, key = desk.writer.runs, key_of(FLOW, "one")
    assert runs.pause(key, now=desk.now) == {QUEUE}
    assert runs.pause(key, now=desk.now) == set()
    assert (row(desk).state, row(desk).reason) == ("paused", "asked")
    desk.later(86_400)
    assert desk.claim(10, QUEUE) == []
    desk.commit(changing(NewSignal(key, "word", b"1")))
    assert desk.claim(10, QUEUE) == []
    assert runs.resume(key, now=desk.now) == {QUEUE}
    assert runs.resume(key, now=desk.now) == set()
    assert desk.claim_one(QUEUE).id == key


def test_the_worker_of_a_run_learns_with_its_next_commit_that_it_is_to_pause(desk: Desk, neighbour: Desk) -> None:
    desk.commit(changing(new()), changing(new("other")))
    one, other = desk.claim(10, QUEUE)
    neighbour.writer.runs.pause(one.id, now=desk.now)
    units = [changing(step(each.id, 0, "a"), delivery=each) for each in (one, other)]
    desk.commit(*units)
    assert [unit.answer.stops for unit in units] == [True, False]
    suspended(desk, one, pausing=True)
    assert desk.claim(10, QUEUE) == []
    neighbour.writer.runs.resume(one.id, now=desk.now)
    assert desk.claim_one(QUEUE).id == one.id


def test_a_run_that_stops_for_a_pause_that_is_over_goes_on_at_once(desk: Desk, neighbour: Desk) -> None:
    delivery = begun(desk)
    neighbour.writer.runs.pause(delivery.id, now=desk.now)
    neighbour.writer.runs.resume(delivery.id, now=desk.now)
    suspended(desk, delivery, pausing=True)
    assert desk.claim_one(QUEUE).id == delivery.id


def test_a_parked_run_says_why_until_it_is_resumed(desk: Desk) -> None:
    delivery = begun(desk)
    park = ParkRun(delivery.id, "nondeterminism", "- a\n+ b")
    desk.commit(changing(park, delivery=delivery, settlement=Again(NEVER_SECONDS, charged=False)))
    assert (row(desk).state, row(desk).reason, row(desk).error) == ("paused", "nondeterminism", "- a\n+ b")
    desk.writer.runs.resume(delivery.id, now=desk.now)
    assert (row(desk).state, row(desk).reason, row(desk).error) == ("queued", None, None)


def test_a_terminated_run_takes_its_children_along_and_its_worker_saves_nothing(desk: Desk, neighbour: Desk) -> None:
    parent = begun(desk, "parent")
    child = begun(desk, "child", parent="parent", step="call")
    grandchild = begun(desk, "grandchild", parent="child", step="call")
    desk.commit(ending(begun(desk, "done before", parent="parent", step="other")))
    assert neighbour.writer.runs.terminate(parent.id, now=desk.now, kept_seconds=KEPT) == {QUEUE}
    assert {each.id: each.state for each in desk.writer.runs.listed(None, None, now=desk.now, limit=10)} == {
        "parent": "terminated",
        "child": "terminated",
        "grandchild": "terminated",
        "done before": "complete",
    }
    for delivery in (parent, child, grandchild):
        with pytest.raises(StaleUnits):
            desk.commit(changing(step(delivery.id, 0, "a"), delivery=delivery))
    assert neighbour.writer.runs.terminate(parent.id, now=desk.now, kept_seconds=KEPT) == set()


def test_a_restarted_run_begins_anew_from_a_step_with_a_message_of_its_own(desk: Desk) -> None:
    delivery = begun(desk)
    desk.commit(changing(*(step(delivery.id, number, name) for number, name in enumerate("abc")), delivery=delivery))
    again = message(b'{"run":"one","generation":1}', queue=QUEUE, id=delivery.id)
    runs = desk.writer.runs
    assert runs.restart(delivery.id, 1, 5, again, kept_seconds=KEPT) == set()  # somebody else was faster
    assert runs.restart(delivery.id, 1, 0, again, kept_seconds=KEPT) == {QUEUE}
    with pytest.raises(StaleUnits):
        desk.commit(ending(delivery))
    assert names(desk) == [("a", "done")]
    anew = desk.claim_one(QUEUE)
    assert (anew.body, anew.before, row(desk).generation) == (again.body, 0, 1)
    desk.commit(ending(anew))
    assert runs.restart(delivery.id, 0, 1, again, kept_seconds=KEPT) == {QUEUE}
    assert (names(desk), row(desk).state, row(desk).result, row(desk).ended_at) == ([], "queued", None, None)


def test_runs_are_listed_newest_first_by_workflow_and_state(desk: Desk) -> None:
    for number in range(3):
        key = key_of(FLOW, f"run {number}")
        sent = message(queue=QUEUE, id=key)._replace(sent_at=T0 + number)
        desk.commit(changing(NewRun(key, FLOW, f"run {number}", b"{}", None, None, sent)))
    runs = desk.writer.runs
    assert [each.id for each in runs.listed(FLOW, None, now=desk.now, limit=2)] == ["run 2", "run 1"]
    assert [each.id for each in runs.listed(None, "queued", now=desk.now, limit=5)] == ["run 2", "run 1", "run 0"]
    assert runs.listed("other", None, now=desk.now, limit=5) == []
    assert runs.listed(FLOW, "running", now=desk.now, limit=5) == []
    assert runs.find(key_of(FLOW, "nobody"), now=desk.now) is None


def test_ended_runs_are_forgotten_in_portions_with_all_that_belongs_to_them(desk: Desk) -> None:
    deliveries = [begun(desk, f"run {number}") for number in range(4)]
    for each in deliveries:
        desk.commit(
            changing(step(each.id, 0, "a"), step(each.id, 1, "b"), NewSignal(each.id, "x", b"1"), delivery=each)
        )
    desk.commit(*(ending(each) for each in deliveries[:3]))
    assert desk.upkeep.prune(now=desk.now + int(KEPT * SECOND), limit=100) == 0
    desk.later(KEPT + 1)
    portions: list[int] = []
    while portions[-1:] != [0]:
        portions.append(desk.upkeep.prune(now=desk.now, limit=4))
        assert portions[-1] <= 4
    assert sum(portions) == 3 * (2 + 1 + 1)
    assert names(desk, "run 3") == [("a", "done"), ("b", "done")]
    assert [each.id for each in desk.writer.runs.listed(None, None, now=desk.now, limit=9)] == ["run 3"]
    assert read_rows(desk.store, "select count(*) from penstock_signals") == [(1,)]
