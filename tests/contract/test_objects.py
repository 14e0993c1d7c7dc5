"""Objects in the store: one owner at a time, saves fenced by owner and epoch, handed over when asked or when it dies."""

from __future__ import annotations

import pytest

from penstock.contracts.items import DONE, PARKED, DropItems, NoteItem
from penstock.contracts.ledger import StaleUnits
from penstock.contracts.objects import Acquired, SaveObject
from penstock.contracts.timers import ALARM, SetTimer
from tests.contract.material import T0, Desk, Sheet, sheet


def acquire(desk: Desk, name: str = "main", hint: str | None = None) -> Acquired:
    return desk.writer.objects.acquire("Counter", name, fresh=b"{}", hint=hint, now=desk.now)


def saving(epoch: int, state: bytes | None, name: str = "main") -> Sheet:
    unit = sheet()
    unit.fences.append(SaveObject("Counter", name, epoch, state))
    return unit


def test_an_object_is_made_once_and_has_one_owner(desk: Desk, neighbour: Desk) -> None:
    mine = acquire(desk)
    assert (mine.owner, mine.epoch, mine.state) == (None, 1, b"{}")
    assert acquire(neighbour).owner == desk.me
    assert desk.writer.objects.wanted() == [("Counter", "main")]
    assert neighbour.writer.objects.wanted() == []


def test_what_its_owner_saves_the_next_one_finds(desk: Desk, neighbour: Desk) -> None:
    mine = acquire(desk)
    desk.commit(saving(mine.epoch, b'{"count":1}'))
    desk.writer.objects.release("Counter", "main", mine.epoch)
    theirs = acquire(neighbour)
    assert (theirs.owner, theirs.epoch, theirs.state) == (None, mine.epoch + 1, b'{"count":1}')


@pytest.mark.parametrize("state", [b'{"count":2}', None])
def test_who_is_not_its_owner_any_more_saves_nothing_and_harms_no_other_unit(
    desk: Desk, neighbour: Desk, state: bytes | None
) -> None:
    mine = acquire(desk)
    desk.writer.objects.release("Counter", "main", mine.epoch)
    theirs = acquire(neighbour)
    stale, other = saving(mine.epoch, state), saving(acquire(desk, "other").epoch, b'{"count":9}', "other")
    with pytest.raises(StaleUnits) as raised:
        desk.commit(stale, other)
    assert raised.value.stale == [stale]
    desk.commit(other)
    neighbour.commit(saving(theirs.epoch, b'{"count":3}'))
    row = desk.writer.objects.look("Counter", "main")
    assert row is not None
    assert (row.state, row.owner) == (b'{"count":3}', neighbour.me)


def test_an_earlier_epoch_of_the_same_owner_saves_nothing(desk: Desk) -> None:
    old = acquire(desk)
    assert acquire(desk).epoch == old.epoch + 1
    with pytest.raises(StaleUnits):
        desk.commit(saving(old.epoch, b"{}"))
    desk.writer.objects.release("Counter", "main", old.epoch)
    row = desk.writer.objects.look("Counter", "main")
    assert row is not None
    assert row.owner == desk.me


def test_a_unit_with_a_stale_object_leaves_nothing_of_itself(desk: Desk, neighbour: Desk) -> None:
    desk.open_shop()
    mine = acquire(desk)
    desk.writer.objects.disown("Counter", "main")
    acquire(neighbour)
    unit = saving(mine.epoch, b'{"count":1}')
    unit.write("insert into shop (id, name) values (1, 'a')")
    unit.effects.append(SetTimer(ALARM, "Counter/main", T0, "object.Counter", "object.alarm"))
    unit.effects.append(NoteItem("enrichment", "1", DONE, 0, 0, None))
    with pytest.raises(StaleUnits):
        desk.commit(unit)
    assert desk.writer.timers.listed(ALARM) == []
    assert desk.writer.items.held("enrichment", limit=10) == []


def test_the_objects_of_a_worker_that_left_are_free(desk: Desk, neighbour: Desk) -> None:
    acquire(desk)
    acquire(desk, "other")
    neighbour.workers.retire(desk.me, now=T0)
    assert acquire(neighbour).owner is None
    row = neighbour.writer.objects.look("Counter", "other")
    assert row is not None
    assert row.owner is None


def test_the_first_hint_stays(desk: Desk) -> None:
    acquire(desk, hint="enam")
    acquire(desk, hint="weur")
    assert [(row.class_name, row.name) for row in desk.writer.objects.listed("Counter", limit=10)] == [
        ("Counter", "main")
    ]
    assert desk.writer.objects.listed("Nobody", limit=10) == []


@pytest.mark.spec("A5-10")
def test_a_lost_alarm_is_marked_until_it_is_set_again(desk: Desk) -> None:
    mine = acquire(desk)
    acquire(desk, "other")
    for name in ("main", "other"):
        desk.writer.objects.lost_alarm("Counter", name, lost=True)
    unit = saving(mine.epoch, None)
    unit.effects.append(SetTimer(ALARM, "Counter/main", T0 + 5, "object.Counter", "object.alarm"))
    desk.commit(unit)
    found = {row.name: (bool(row.alarm_lost), row.alarm) for row in desk.writer.objects.listed(None, limit=10)}
    assert found == {"main": (False, T0 + 5), "other": (True, None)}


def test_a_class_is_known_by_the_tag_it_came_under(desk: Desk) -> None:
    introduce = desk.writer.objects.introduce
    assert introduce("Counter", "v1", now=T0) is None
    assert introduce("Counter", "v1", now=T0) == "v1"
    assert introduce("Counter", "v2", now=T0) == "v1"
    assert introduce("Counter", "v1", now=T0) == "v1", "a tag that was refused has taken its place"


def test_items_are_noted_dropped_and_forgotten_by_state(desk: Desk) -> None:
    notes = [NoteItem("enrichment", str(number), state, number, 0, None) for number, state in enumerate([DONE, PARKED])]
    desk.commit(sheet(*notes, NoteItem("pages", "0", DONE, 0, 0, None)))
    assert sorted(desk.writer.items.held("enrichment", limit=10)) == sorted(notes)

    desk.commit(sheet(DropItems("enrichment", ("0",))))
    assert desk.writer.items.held("enrichment", limit=10) == [notes[1]]
    desk.writer.items.forget("enrichment", states=(DONE,))
    assert desk.writer.items.held("enrichment", limit=10) == [notes[1]]
    desk.writer.items.forget("enrichment", states=(DONE, PARKED))
    assert desk.writer.items.held("enrichment", limit=10) == []
    assert len(desk.writer.items.held("pages", limit=10)) == 1
