"""A message that is sent alone goes to PostgreSQL in one statement, and leaves there what a group of many leaves."""

from __future__ import annotations

import pytest

from penstock.contracts.ledger import NotCommitted
from penstock.storage.postgres.session import PostgresSession
from penstock.storage.postgres.store import PostgresStore
from tests.contract.conftest import at_a_desk
from tests.contract.inspection import Inspect
from tests.contract.material import ORDERS, SECOND, T0, Desk, done, message, sheet
from tests.postgres import empty_database


def test_a_lone_send_is_counted_waits_and_is_news_to_neighbours(desk: Desk, neighbour: Desk, inspect: Inspect) -> None:
    desk.settle(desk.given_one())
    neighbour.upkeep.look_around()
    committed = desk.commit(sheet(message(b"one", due=T0 + SECOND)))

    assert committed.waiting == {ORDERS: T0 + SECOND}
    assert [task for task, _ in committed.measures] == [f"queue:{ORDERS}"]
    assert inspect.counted()[ORDERS].sent == 2
    assert neighbour.upkeep.look_around()
    desk.now += SECOND
    assert [delivery.body for delivery in desk.claim()] == [b"one"]


def test_a_lone_send_of_an_id_that_waits_already_adds_nothing(desk: Desk, inspect: Inspect) -> None:
    desk.send(message(b"one", id=b"1" * 16))
    desk.send(message(b"other", id=b"1" * 16))

    assert [row.body for row in inspect.messages()] == [b"one"]
    assert inspect.counted()[ORDERS].sent == 1


def test_a_lone_send_whose_due_time_has_passed_is_found_after_many_claims(desk: Desk) -> None:
    for number in range(30):
        desk.send(*(message(due=T0 + number) for _ in range(20)))
        desk.commit(*map(done, desk.claim(20)))
    desk.send(message(b"late", due=T0 - SECOND))

    assert [delivery.body for delivery in desk.claim()] == [b"late"]


@pytest.mark.parametrize("happened", [True, False])
def test_the_answer_to_a_lone_send_that_is_lost_is_read_back(monkeypatch: pytest.MonkeyPatch, happened: bool) -> None:
    ask = PostgresSession._ask

    def lost(session: PostgresSession, statement: str, bound: object = None) -> object:
        if statement != "sends.send_alone":
            return ask(session, statement, bound)  # type: ignore[arg-type]
        if happened:
            ask(session, statement, bound)  # type: ignore[arg-type]
        session.connection.close()
        return ask(session, statement, bound)  # type: ignore[arg-type]

    with at_a_desk(PostgresStore(empty_database())) as desk:
        monkeypatch.setattr(PostgresSession, "_ask", lost)
        if happened:
            desk.send(message(b"one"))
        else:
            with pytest.raises(NotCommitted):
                desk.send(message(b"one"))
        monkeypatch.undo()
        desk.send(message(b"two"))

        assert [delivery.body for delivery in desk.claim()] == ([b"one", b"two"] if happened else [b"two"])
