"""Any history of sends, claims, settlements, deaths and lapses leaves the store as a model in dictionaries says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from penstock.contracts.ledger import StaleUnits
from penstock.model.message import PRIORITIES, Delivery
from penstock.model.outcome import DONE, Again, Dead, Settlement
from tests.contract.conftest import MAKERS
from tests.contract.inspection import check_conservation
from tests.contract.material import SECOND, T0, Desk, message, rules, sheet, want
from tests.contract.model import Model
from tests.extent import EVERYTHING

QUEUES = ("red", "blue")
LEASES = (5, 20)
CRASHES_MAX, RETRIES = 2, 3


class LedgerMachine(RuleBasedStateMachine):
    """Two writers on one store. Time moves only by a rule."""

    maker = "sqlite"
    deliveries = Bundle("deliveries")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        made = MAKERS[self.maker](Path(self.folder.name))
        self.stores = (made.store, made.another)
        self.inspect = made.inspect
        self.model = Model(CRASHES_MAX, RETRIES)
        self.now = T0
        self.desks = [Desk(store) for store in self.stores]
        self.tokens: set[int] = set()
        self.moments = count(1)  # due times differ by a microsecond, so that their order is one

    @initialize()
    def register(self) -> None:
        self.desks[0].workers.register_queues([rules(queue, crashes_max=CRASHES_MAX) for queue in QUEUES])

    def at(self, desk: int) -> Desk:
        self.desks[desk].now = self.now
        return self.desks[desk]

    # -- what may happen --------------------------------------------------------------------------------

    @rule(
        desk=st.integers(0, 1),
        sent=st.lists(
            st.tuples(
                st.integers(0, 30), st.sampled_from(QUEUES), st.sampled_from(PRIORITIES), st.sampled_from([0, 0, 7, 30])
            ),
            min_size=1,
            max_size=5,
        ),
    )
    def send(self, desk: int, sent: list[tuple[int, str, int, int]]) -> None:
        messages = []
        for number, queue, priority, delay in sent:
            id, due = (
                queue.encode().ljust(8) + number.to_bytes(8, "big"),
                self.now + delay * SECOND - next(self.moments),
            )
            messages.append(message(id=id, queue=queue, priority=priority, due=due))
            self.model.send(id, queue, priority, due)
        self.at(desk).send(*messages)

    @rule(
        target=deliveries,
        desk=st.integers(0, 1),
        queue=st.sampled_from(QUEUES),
        limit=st.integers(1, 6),
        lease=st.sampled_from(LEASES),
    )
    def claim(self, desk: int, queue: str, limit: int, lease: int) -> Any:
        committed = self.at(desk).commit(wants=[want(queue, limit, lease)])
        claimed = {delivery.id for delivery in committed.claimed}
        assert len(claimed) == len(committed.claimed)
        due = [id for priority in PRIORITIES for id in self.model.due(queue, priority, self.now)]
        assert claimed <= set(due)
        assert self.places(claimed) in (self.first(due, limit), self.first(due, limit, lowest_first=True))
        if len(claimed) < limit:
            # The model has not taken them yet, so what is due now is left out of its answer.
            for delivery in committed.claimed:
                self.take(desk, delivery, lease)
            assert committed.next_due == {queue: self.model.next_due(queue)}
        else:
            assert committed.next_due == {}
            for delivery in committed.claimed:
                self.take(desk, delivery, lease)
        if committed.claimed:
            assert committed.number not in self.tokens
            self.tokens.add(committed.number)
        return multiple(*committed.claimed)

    def places(self, ids: Iterable[bytes]) -> list[tuple[int, int]]:
        """By which rows are told apart in a claim: of those that came back at the same moment any may be the next."""
        return sorted((self.model.rows[id].priority, self.model.rows[id].due) for id in ids)

    def first(self, due: list[bytes], limit: int, *, lowest_first: bool = False) -> list[tuple[int, int]]:
        """What a claim has to take; one in ten begins at the lowest priority."""
        sign = -1 if lowest_first else 1
        places = sorted(self.places(due), key=lambda place: (sign * place[0], place[1]))
        return sorted(places[:limit])

    def take(self, desk: int, delivery: Delivery, lease: int) -> None:
        row = self.model.rows[delivery.id]
        assert (delivery.attempts, delivery.crashes) == (row.attempts, row.crashes)
        self.model.take(delivery.id, self.desks[desk].me, delivery.token, self.now + lease * SECOND)

    @rule(
        desk=st.integers(0, 1),
        delivery=deliveries,
        settlement=st.sampled_from(
            [DONE, DONE, Again(0.0), Again(9.0), Again(0.0, charged=False), Dead("discarded"), None]
        ),
    )
    def settle(self, desk: int, delivery: Delivery, settlement: Settlement | None) -> None:
        unit = sheet(delivery=delivery, settlement=settlement)
        if not self.model.may_settle(delivery.id, delivery.token):
            with pytest.raises(StaleUnits):
                self.at(desk).commit(unit)
            return
        self.at(desk).commit(unit)
        match settlement:
            case Again(seconds, charged):
                self.model.again(delivery.id, self.now + int(seconds * SECOND), charged)
            case Dead(reason):
                self.model.bury(delivery.id, reason)
            case None:
                pass
            case _:
                self.model.done(delivery.id)

    @rule(seconds=st.sampled_from([1, 4, 9, 25]))
    def wait(self, seconds: int) -> None:
        self.now += seconds * SECOND

    @rule(desk=st.integers(0, 1))
    def sweep(self, desk: int) -> None:
        self.at(desk).sweep()
        for holder in {row.holder for row in self.model.rows.values() if row.holder is not None}:
            self.model.give_back(holder, None, self.now, lapsed_by=self.now)

    @rule(desk=st.integers(0, 1), known=st.booleans(), data=st.data())
    def die(self, desk: int, known: bool, data: st.DataObject) -> None:
        """One writer is gone; the other returns what it held, and it comes back as somebody new."""
        me = self.desks[desk].me
        held = [row for row in self.inspect.messages() if row.worker == me]
        started = data.draw(st.sets(st.sampled_from(held)) if held else st.just(set())) if known else None
        self.at(1 - desk).workers.return_rows(
            me, started=None if started is None else [row.seq for row in started], now=self.now
        )
        self.model.give_back(me, None if started is None else {row.id for row in started}, self.now)
        self.desks[desk].close()
        self.desks[desk] = Desk(self.stores[desk], now=self.now)

    # -- what must hold ---------------------------------------------------------------------------------

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        found = {
            row.id: (row.queue, row.priority, row.due, row.worker, row.attempts, row.crashes)
            for row in self.inspect.messages()
        }
        assert found == {
            id: (row.queue, row.priority, row.due, row.holder, row.attempts, row.crashes)
            for id, row in self.model.rows.items()
        }

    @invariant()
    def the_counters_are_those_of_the_model(self) -> None:
        assert self.inspect.counted() == self.model.counted
        reasons: dict[bytes, list[str]] = {}
        for letter in self.inspect.dead():
            reasons.setdefault(letter.id, []).append(letter.reason)
        assert reasons == self.model.dead

    def teardown(self) -> None:
        check_conservation(self.inspect)
        for desk in self.desks:
            desk.close()
        self.folder.cleanup()


@pytest.mark.parametrize("maker", MAKERS)
def test_any_history_leaves_the_store_as_the_model_says(maker: str, seed: int) -> None:
    machine = hypothesis.seed(seed)(type("Machine", (LedgerMachine,), {"maker": maker}))
    examples = 200 if EVERYTHING else 25
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=40, database=None))
