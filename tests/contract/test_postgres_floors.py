"""On PostgreSQL: claims step over no entries that an old snapshot keeps in the index, and miss no row for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest

from penstock.storage.postgres import floors
from penstock.storage.postgres.connection import statements
from penstock.storage.postgres.floors import BELOW_MICROS, ENOUGH, EVERY_MICROS
from penstock.storage.postgres.store import PostgresStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import PostgresInspect, check_conservation
from tests.contract.material import ORDERS, SECOND, T0, Desk, done, message, want
from tests.postgres import empty_database

LATE = T0 - 5 * BELOW_MICROS  # the due time of a row that was saved long after it


class Trip:
    """Fails a transaction at one point of it, once."""

    point = ""

    def at(self, point: str) -> None:
        if point == self.point:
            self.point = ""
            raise RuntimeError("tripped")


@pytest.fixture
def url() -> str:
    return empty_database()


@pytest.fixture
def trip() -> Trip:
    return Trip()


@pytest.fixture
def busy(url: str, trip: Trip, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A desk that has claimed and settled enough to have a floor a second ago, however slow the machine was."""
    monkeypatch.setattr(floors, "SHARE", 0)
    with at_a_desk(PostgresStore(url, faults=trip)) as desk:
        flow(desk, due=T0)
        yield desk
    check_conservation(PostgresInspect(url))


def flow(desk: Desk, *, due: int) -> None:
    desk.send(*(message(due=due) for _ in range(ENOUGH)))
    desk.commit(*map(done, desk.claim(ENOUGH)))


def test_a_row_that_this_process_saved_late_is_found_at_once(busy: Desk) -> None:
    busy.send(message(due=LATE), message(due=T0))

    assert len(busy.claim()) == 2


def test_a_row_below_the_floor_is_found_within_a_second(url: str, busy: Desk) -> None:
    late = message(due=LATE)
    with at_a_desk(PostgresStore(url)) as neighbour:
        neighbour.send(message(), late, message())

    above = busy.commit(wants=[want()])
    assert len(above.claimed) == 2
    assert above.next_due == {ORDERS: T0 + EVERY_MICROS}  # nobody has to come by

    busy.now = T0 + EVERY_MICROS
    everything = busy.commit(wants=[want()])
    assert [each.id for each in everything.claimed] == [late.id]
    assert everything.next_due == {ORDERS: None}


def test_a_row_that_is_due_between_two_looks_is_waited_for(busy: Desk) -> None:
    busy.send(message(), message(due=T0 + 300_000))

    assert busy.commit(wants=[want()]).next_due == {ORDERS: T0 + 300_000}


def test_a_claim_that_was_rolled_back_hides_nothing(busy: Desk, trip: Trip) -> None:
    sent = [message(due=T0 - 3 * SECOND), message(due=T0)]
    busy.send(*sent)
    busy.now = T0 + EVERY_MICROS
    trip.point = "commit.claimed"
    with pytest.raises(RuntimeError, match="tripped"):
        busy.commit(wants=[want()])

    assert [each.id for each in busy.claim()] == [each.id for each in sent]


def test_a_shorter_lease_of_another_process_is_known_within_a_second(url: str, busy: Desk) -> None:
    with at_a_desk(PostgresStore(url)) as neighbour:
        neighbour.send(message(queue="quick"), message())
        neighbour.commit(wants=[want("quick", lease_seconds=2)])

        lapse = busy.commit(wants=[want()]).next_lapse
        assert lapse == T0 + EVERY_MICROS
        busy.now = lapse
        assert busy.commit(wants=[], sweep=True).next_lapse == T0 + 2 * SECOND


@pytest.mark.fault("F23")
@pytest.mark.spec("A8-15")
@pytest.mark.parametrize("is_analyzed", [False, True], ids=["never analyzed", "analyzed while empty"])
def test_a_claim_above_the_floor_steps_over_nothing_that_an_old_snapshot_keeps(url: str, is_analyzed: bool) -> None:
    with psycopg.connect(url, autocommit=True) as holder, at_a_desk(PostgresStore(url)) as desk:
        holder.execute("begin isolation level repeatable read; select 1")
        for _ in range(5):
            flow(desk, due=T0 - 9 * SECOND)
        if is_analyzed:
            analyze(url)

        whole, above = pages_of_a_claim(url, floor=0), pages_of_a_claim(url, floor=T0 - SECOND)

    assert above * 10 < whole, f"{above} pages above the floor, {whole} without one"


def analyze(url: str) -> None:
    """What the server does by itself after many changes, here at a moment when no row is left."""
    with psycopg.connect(url) as connection:
        connection.execute("analyze penstock.penstock_messages")


def pages_of_a_claim(url: str, *, floor: int) -> int:
    """The pages that the server looks at for a claim that finds nothing."""
    bound = {
        "priorities": [0, 1, 2],
        "floors": [floor] * 3,
        "queue": ORDERS,
        "now": T0,
        "limit": 100,
        "number": 1,
        "worker": 1,
        "lease_end": T0,
    }
    with psycopg.connect(url, options="-c enable_seqscan=off -c enable_bitmapscan=off") as connection:
        explained = connection.execute(f"explain (analyze, buffers) {statements()['claims.take']}".encode(), bound)
        plan = "\n".join(line for (line,) in explained)
        connection.rollback()
    found = re.search(r"Buffers: shared hit=(\d+)(?: read=(\d+))?", plan)
    assert found, plan
    return int(found[1]) + int(found[2] or 0)


def test_what_is_due_at_one_moment_is_claimed_as_it_was_sent_also_where_rows_lie_in_the_place_of_older_ones(
    url: str,
) -> None:
    with at_a_desk(PostgresStore(url)) as desk:
        desk.send(*(message(due=T0) for _ in range(50)))
        desk.commit(*map(done, desk.claim(40)))
        vacuum(url)
        desk.send(*(message(due=T0) for _ in range(20)))

        claimed = [each.seq for each in desk.claim(30)]

    assert len(claimed) == 30
    assert claimed == sorted(claimed)


def vacuum(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum penstock.penstock_messages")
