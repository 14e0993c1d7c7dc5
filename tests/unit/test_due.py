"""What the next group claims, fires and takes back: decided without a clock, a loop or a store."""

from __future__ import annotations

import pytest

from penstock.contracts.effects import SealedUnit
from penstock.contracts.ledger import Chores, ClaimRequest, Committed
from penstock.contracts.timers import TIMERS
from penstock.model.message import Delivery
from penstock.runtime.due import SWEEP_AGAIN_MICROS, DueTable
from tests.contract.material import T0, message

LATER = T0 + 1_000_000


class Room:
    """A consumer with room for so many."""

    def __init__(self, queue: str, room: int = 10) -> None:
        self.queue = queue
        self.room = room

    def claim_request(self) -> ClaimRequest | None:
        return ClaimRequest(self.queue, self.room, 1) if self.room else None

    def tuned(self, parallel: int | None) -> None: ...
    def take(self, deliveries: list[Delivery], *, full: bool, at: int) -> None: ...


def table(*rooms: Room) -> tuple[DueTable, dict[str, Room]]:
    """As it is once the first look has found nothing."""
    due, sources = DueTable(), {room.queue: room for room in rooms}
    requests, chores = due.decide(T0, [], sources, may_sweep=True)
    due.learn(requests, chores, Committed(1), {}, T0)
    due.by_queue = dict.fromkeys(sources)
    return due, sources


def asked(due: DueTable, sources: dict[str, Room], *units: SealedUnit, now: int = T0) -> list[str]:
    requests, _ = due.decide(now, units, sources, may_sweep=True)
    return sorted(request.queue for request in requests)


def sending(queue: str, due: int = T0) -> SealedUnit:
    unit = SealedUnit("")
    unit.effects.append(message(queue=queue, due=due))
    return unit


def test_a_table_that_knows_of_nothing_due_asks_for_nothing() -> None:
    due, sources = table(Room("a"), Room("b"))
    assert asked(due, sources) == []
    assert due.earliest(T0, sources, may_sweep=True) is None


def test_what_a_unit_sends_is_claimed_in_its_own_group_if_it_is_due() -> None:
    due, sources = table(Room("a"), Room("b"))
    assert asked(due, sources, sending("a"), sending("b", LATER), sending("elsewhere")) == ["a"]


def test_a_queue_is_asked_for_when_its_first_row_is_due_and_has_room() -> None:
    due, sources = table(Room("a"), Room("full", 0))
    elsewhere = due.learn([], Chores(), Committed(2), {"a": LATER, "full": LATER, "other": T0}, T0)
    assert elsewhere == ["other"]
    assert asked(due, sources) == []
    assert due.earliest(T0, sources, may_sweep=True) == LATER
    assert asked(due, sources, now=LATER) == ["a"]


def test_a_full_claim_is_followed_by_another_and_one_that_left_room_is_not() -> None:
    due, sources = table(Room("a"), Room("b"))
    due.look(None)
    requests, chores = due.decide(T0, [], sources, may_sweep=True)
    due.learn(requests, chores, Committed(2, next_due={"b": None}), {}, T0)
    assert asked(due, sources) == ["a"]


def test_news_during_a_claim_lead_to_another_look() -> None:
    due, sources = table(Room("a"))
    due.look({"a"})
    requests, chores = due.decide(T0, [], sources, may_sweep=True)
    due.look({"a"})
    due.learn(requests, chores, Committed(2, next_due={"a": None}), {}, T0)
    assert asked(due, sources) == ["a"]


def test_queues_take_turns_in_being_asked_for_first() -> None:
    due, sources = table(Room("a"), Room("b"), Room("c"))
    first = []
    for _ in range(3):
        due.look(None)
        first.append(due.decide(T0, [], sources, may_sweep=True)[0][0].queue)
    assert sorted(first) == ["a", "b", "c"]


@pytest.mark.parametrize("may_sweep", [True, False])
def test_a_lapsed_lease_is_taken_back_unless_the_clock_has_just_jumped(may_sweep: bool) -> None:
    due, sources = table(Room("a"))
    due.learn([ClaimRequest("a", 1, 1)], Chores(), Committed(2, next_lapse=T0, next_due={"a": None}), {}, T0)
    _, chores = due.decide(T0, [], sources, may_sweep=may_sweep)
    assert chores == Chores(sweep=may_sweep)
    assert due.earliest(T0, sources, may_sweep=may_sweep) == T0 + (0 if may_sweep else SWEEP_AGAIN_MICROS)


def test_a_timer_that_is_set_is_the_next_to_fire_and_other_processes_are_notified() -> None:
    due, sources = table(Room("a"))
    assert due.learn([], Chores(), Committed(2), {TIMERS: LATER}, T0) == [TIMERS]
    assert due.earliest(T0, sources, may_sweep=True) == LATER
    assert due.decide(LATER, [], sources, may_sweep=True)[1] == Chores(fire=True)
