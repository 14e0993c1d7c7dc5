"""Dead letters at the contract: dug up, dealt with or edited inside a unit, all of it or nothing, and by one hand only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.contracts.effects import Edit, LetterAction, Replay, Resolve
from penstock.contracts.ledger import RepeatedUnits, StaleUnits
from penstock.contracts.store import Store
from penstock.model.errors import StatementFailed
from penstock.model.message import KEYED, REPAIRED, checksum
from penstock.model.outcome import DONE, Again, Dead, Failure, Split
from tests.contract.inspection import Counted, Inspect
from tests.contract.material import ITEMS, NEW_ITEM, ORDERS, SECOND, T0, Desk, Sheet, message, read_rows, rules, sheet

DIED = Dead("exhausted", Failure("Boom", "it broke"))


def letters(*wanted: LetterAction, unit: Sheet | None = None) -> Sheet:
    unit = unit or sheet()
    unit.effects += wanted
    return unit


def bury(desk: Desk, count: int = 1) -> None:
    for number in range(count):
        desk.settle(desk.given_one(body=b'{"number":%d}' % number), DIED)


def done(unit: Sheet) -> int:
    return unit.answer.letters


@pytest.mark.spec("A3-06", "A3-07", "G4-08")
def test_a_replay_sends_and_marks_in_one_commit(desk: Desk, store: Store, inspect: Inspect) -> None:
    desk.send(message(b"poison"))
    died = desk.claim_one()
    desk.settle(died, DIED)
    desk.later(60)
    unit = letters(Replay(1, desk.now))

    committed = desk.commit(unit)

    assert done(unit) == 1
    assert committed.waiting == {ORDERS: desk.now}
    assert inspect.counted() == {ORDERS: Counted(sent=1, dead=0)}
    back = desk.claim_one()
    assert (back.body, back.replay_of, back.correlation_id) == (b"poison", died.id, died.correlation_id)
    assert (back.attempt, back.crashes, back.sent_at) == (1, 0, T0)
    assert back.id != died.id
    assert back.checksum == checksum(back.id, back.body)
    marked = "select resolution, replayed_at, replay_count from penstock_dead"
    assert read_rows(store, marked) == [("replayed", desk.now, 1)]


@pytest.mark.spec("A3-07")
def test_each_replay_of_a_message_has_an_id_of_its_own_and_names_the_first(desk: Desk) -> None:
    first = desk.given_one()
    desk.settle(first, DIED)
    ids = [first.id]
    for letter in (1, 2, 3):
        desk.commit(letters(Replay(letter, desk.now)))
        back = desk.claim_one()
        assert (back.replay_of, back.origin) == (first.id, first.id)
        ids.append(back.id)
        desk.settle(back, DIED)

    assert len(set(ids)) == 4


def test_a_replay_is_recorded_as_an_id_that_can_come_back(desk: Desk, store: Store) -> None:
    bury(desk)
    desk.commit(letters(Replay(1, desk.now)))
    back = desk.claim_one()
    assert back.flags & KEYED
    desk.later(1)
    desk.settle(back)

    assert read_rows(store, "select id, processed_at from penstock_seen") == [(back.id, desk.now)]


def test_a_replay_that_is_due_later_waits(desk: Desk) -> None:
    bury(desk)
    desk.commit(letters(Replay(1, desk.now + 30 * SECOND)))
    assert desk.claim() == []
    desk.later(30)
    desk.settle(desk.claim_one())


@pytest.mark.spec("A3-06")
def test_one_letter_twice_in_a_unit_or_in_two_units_of_a_group_is_sent_once(desk: Desk, inspect: Inspect) -> None:
    bury(desk)
    twice = letters(Replay(1, T0), Replay(1, T0))
    other = letters(Replay(1, T0), Resolve(1, "discarded", "no"), Edit(1, b"x"))

    desk.commit(twice, other)

    assert (done(twice), done(other)) == (1, 0)
    assert len(inspect.messages()) == 1


@pytest.mark.spec("A3-06", "A3-08")
@pytest.mark.parametrize("first", [Replay(1, T0), Resolve(1, "discarded", "spam"), Resolve(1, "fixed", "by hand")])
@pytest.mark.parametrize("second", [Replay(1, T0), Resolve(1, "discarded", "spam"), Edit(1, b"other")])
def test_of_two_desks_that_deal_with_one_letter_the_first_wins(
    desk: Desk, neighbour: Desk, inspect: Inspect, first: LetterAction, second: LetterAction
) -> None:
    bury(desk)
    won, lost = letters(first), letters(second)

    desk.commit(won)
    neighbour.commit(lost)

    assert (done(won), done(lost)) == (1, 0)
    replayed = isinstance(first, Replay)
    assert len(inspect.messages()) == replayed
    assert inspect.counted()[ORDERS] == Counted(sent=1, purged=int(not replayed))


def test_a_letter_that_does_not_exist_is_not_counted(desk: Desk, inspect: Inspect) -> None:
    unit = letters(Replay(7, T0), Resolve(7, "discarded", "no"), Edit(7, b""))
    desk.commit(unit)
    assert done(unit) == 0
    assert inspect.messages() == []


# -- all or nothing -------------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-06")
def test_a_unit_with_a_stale_fence_digs_up_nothing(desk: Desk, inspect: Inspect) -> None:
    bury(desk)
    stale = desk.given_one()
    desk.settle(stale, Again(0.0, charged=False))
    before = inspect.messages(), inspect.dead(), inspect.counted()

    with pytest.raises(StaleUnits):
        desk.commit(letters(Replay(1, T0), unit=sheet(delivery=stale, settlement=DONE)))

    assert (inspect.messages(), inspect.dead(), inspect.counted()) == before


def test_a_unit_whose_statement_fails_digs_up_nothing_and_counts_anew_when_it_is_tried_again(
    desk: Desk, store: Store, inspect: Inspect
) -> None:
    desk.open_shop()
    bury(desk)
    unit = letters(Replay(1, T0))
    bad = unit.write(NEW_ITEM, id=1, name=None)
    with pytest.raises(StatementFailed):
        desk.commit(unit)
    assert len(inspect.dead()) == 1

    unit.effects.remove(bad)
    desk.commit(unit)
    assert done(unit) == 1
    assert read_rows(store, ITEMS) == []


def test_a_unit_whose_key_was_saved_before_digs_up_nothing(desk: Desk, inspect: Inspect) -> None:
    bury(desk, 2)
    desk.commit(letters(Replay(1, T0), unit=sheet(once="key")))
    with pytest.raises(RepeatedUnits):
        desk.commit(letters(Replay(2, T0), unit=sheet(once="key")))
    assert len(inspect.dead()) == 1


@pytest.mark.spec("A3-09")
def test_a_repair_is_saved_with_the_settlement_of_the_news_it_follows_from(desk: Desk, inspect: Inspect) -> None:
    bury(desk)
    news = desk.given_one(queue="orders-dlq")
    desk.commit(letters(Replay(1, T0, "fixed", b"mended", REPAIRED), unit=sheet(delivery=news, settlement=DONE)))

    back = desk.claim_one()
    assert (back.body, bool(back.flags & REPAIRED)) == (b"mended", True)
    assert back.checksum == checksum(back.id, b"mended")
    desk.settle(back)
    assert inspect.counted() == {ORDERS: Counted(sent=1, acked=1), "orders-dlq": Counted(sent=1, acked=1)}


# -- editing --------------------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-08")
def test_an_edited_letter_is_replayed_with_its_new_body(desk: Desk, store: Store) -> None:
    bury(desk)
    desk.later(5)
    unit = letters(Edit(1, b"better"))
    desk.commit(unit)
    assert done(unit) == 1
    assert read_rows(store, "select body, edited_at, resolution from penstock_dead") == [(b"better", desk.now, None)]

    desk.commit(letters(Replay(1, desk.now)))
    back = desk.claim_one()
    assert (back.body, back.checksum) == (b"better", checksum(back.id, b"better"))


# -- one id, several letters ------------------------------------------------------------------------------------------


@pytest.mark.spec("A2-15")
def test_a_split_adds_one_less_than_its_handlers_and_a_stale_one_adds_nothing(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one(body=b"shared")
    desk.commit(sheet(delivery=delivery, settlement=Split(("a", "b", "c"))))

    assert inspect.counted() == {ORDERS: Counted(sent=3)}
    with pytest.raises(StaleUnits):
        desk.commit(sheet(delivery=delivery, settlement=Split(("a", "b", "c"))))
    rows = desk.claim()
    assert sorted((row.handler, row.id, row.body) for row in rows) == [(h, delivery.id, b"shared") for h in "abc"]
    for row in rows:
        desk.settle(row)


@pytest.mark.spec("A2-15", "A3-06")
def test_letters_of_several_handlers_of_one_message_go_back_each_to_its_own(desk: Desk, inspect: Inspect) -> None:
    delivery = desk.given_one()
    desk.commit(sheet(delivery=delivery, settlement=Split(("a", "b"))))
    for row in desk.claim():
        desk.settle(row, DIED)
    unit = letters(Replay(1, T0), Replay(2, T0))

    desk.commit(unit)

    assert done(unit) == 2
    assert sorted(row.handler for row in desk.claim()) == ["a", "b"]
    assert inspect.counted()[ORDERS] == Counted(sent=2)


@pytest.mark.spec("G4-10", "A3-04")
def test_one_id_that_died_on_two_queues_or_twice_on_one_is_several_letters_that_can_all_go_back(
    desk: Desk, inspect: Inspect
) -> None:
    id = b"0123456789abcdef"
    for queue in (ORDERS, "other", ORDERS):
        desk.settle(desk.given_one(id=id, queue=queue), DIED)
    assert [letter.queue for letter in inspect.dead()] == [ORDERS, "other", ORDERS]
    unit = letters(*(Replay(number, T0) for number in (1, 2, 3)))

    desk.commit(unit)

    assert done(unit) == 3
    assert len({row.id for row in inspect.messages()}) == 3


# -- news of a death --------------------------------------------------------------------------------------------------


@pytest.mark.spec("A3-03", "G4-44")
def test_each_death_in_a_watched_queue_is_a_message_in_the_same_commit(desk: Desk, inspect: Inspect) -> None:
    desk.workers.register_queues([replace(rules(), watched=True)])
    delivery = desk.given_one()

    committed = desk.commit(sheet(delivery=delivery, settlement=DIED))

    assert committed.waiting == {"orders-dlq": T0}
    news = desk.claim_one("orders-dlq")
    assert (news.type, news.body, news.causation_id) == ("message.died", b'{"letter":1}', delivery.id)
    assert (news.correlation_id, news.hops, news.depth) == (delivery.correlation_id, delivery.hops, delivery.depth)
    with pytest.raises(StaleUnits):
        desk.settle(delivery, DIED)
    desk.settle(news)
    assert inspect.counted() == {ORDERS: Counted(sent=1, dead=1), "orders-dlq": Counted(sent=1, acked=1)}


@pytest.mark.spec("A2-12", "B7-07")
def test_pruning_says_how_many_records_it_removed_and_spares_what_still_waits(desk: Desk) -> None:
    much_later = message(flags=KEYED, due=T0 + 40 * 86_400 * SECOND)
    desk.commit(letters(unit=sheet(message(flags=KEYED), message(flags=KEYED), much_later)))
    for delivery in desk.claim(2):
        desk.settle(delivery)
    desk.later(15 * 86_400 - 1)
    assert desk.upkeep.prune(now=desk.now, limit=100) == 0
    desk.later(2)
    assert desk.upkeep.prune(now=desk.now, limit=1) == 1
    assert desk.upkeep.prune(now=desk.now, limit=100) == 1
    assert desk.upkeep.prune(now=desk.now, limit=100) == 0
