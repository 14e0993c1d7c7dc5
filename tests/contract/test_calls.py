"""Paid calls in the store: a sum never grows past its bound, whoever asks at once, and what was counted is put right once."""

from __future__ import annotations

import threading
from itertools import count

import apsw
import psycopg
import pytest

from penstock.contracts.calls import NANOS, RELEASED, SETTLED, UNKNOWN, CallEnd, NewCall, OverBudget, Share
from penstock.contracts.store import Store
from penstock.storage.schema import VERSION
from tests.contract.conftest import Made, at_a_desk
from tests.contract.inspection import PostgresInspect, SqliteInspect
from tests.contract.material import T0, Desk, read_rows

DAY = Share("day", "2026-09-21", NANOS)
MONTH = Share("month", "2026-09", 2 * NANOS)
CENT = NANOS // 100
DAYS = 86_400

_numbers = count(1)


def call(at_most: int = 10 * CENT, *, service: str = "shop", run: str | None = None) -> NewCall:
    return NewCall(next(_numbers).to_bytes(16, "big"), service, "brave", "web_search", run, b"c" * 16, at_most)


def reserved(desk: Desk, *shares: Share, at_most: int = 10 * CENT) -> NewCall:
    made = call(at_most)
    desk.writer.calls.reserve(made, shares or (DAY, MONTH), now=desk.now)
    return made


def sums(store: Store) -> dict[str, tuple[int, float, float]]:
    rows = read_rows(store, "select scope, calls, reserved, settled from penstock_spending order by scope, period")
    return {scope: (calls, held / CENT, spent / CENT) for scope, calls, held, spent in rows}


def states(store: Store) -> list[tuple[str, float, int | None]]:
    found = read_rows(store, "select state, cost, units from api_calls_ledger order by id")
    return [(state, round(cost, 9), units) for state, cost, units in found]


@pytest.mark.spec("B8-T33")
def test_a_call_counts_at_its_most_until_it_is_settled_and_then_at_its_cost(desk: Desk, store: Store) -> None:
    made = reserved(desk)
    assert sums(store) == {"day": (1, 10, 0), "month": (1, 10, 0)}
    assert states(store) == [("reserved", 0.1, None)]

    desk.writer.calls.settle(made, (DAY, MONTH), CallEnd(SETTLED, 1_200, 3 * CENT), now=desk.now)

    assert sums(store) == {"day": (1, 0, 3), "month": (1, 0, 3)}
    assert states(store) == [("settled", 0.03, 1_200)]


def test_it_is_settled_once(desk: Desk, store: Store) -> None:
    made = reserved(desk)
    for cost in (3 * CENT, 9 * CENT):
        desk.writer.calls.settle(made, (DAY, MONTH), CallEnd(SETTLED, 1, cost), now=desk.now)
    desk.writer.calls.settle(made, (DAY, MONTH), CallEnd(RELEASED, 0, 0), now=desk.now)

    assert sums(store)["day"] == (1, 0, 3)
    assert states(store) == [("settled", 0.03, 1)]


@pytest.mark.parametrize("end, counted", [(CallEnd(RELEASED, 0, 0), 0), (CallEnd(UNKNOWN, None, 10 * CENT), 10)])
def test_what_cost_nothing_gives_room_and_an_unknown_cost_does_not(
    desk: Desk, store: Store, end: CallEnd, counted: int
) -> None:
    desk.writer.calls.settle(reserved(desk), (DAY, MONTH), end, now=desk.now)
    assert sums(store) == {"day": (1, 0, counted), "month": (1, 0, counted)}


@pytest.mark.spec("B6-03")
def test_a_call_that_one_budget_does_not_hold_is_counted_in_none(desk: Desk, store: Store) -> None:
    for _ in range(10):
        reserved(desk)
    with pytest.raises(OverBudget) as over:
        reserved(desk, at_most=1)

    [spent] = over.value.spent
    assert (spent.share, spent.counted, spent.passes) == (DAY, NANOS, True)
    assert sums(store) == {"day": (10, 100, 0), "month": (10, 100, 0)}
    assert len(states(store)) == 10


def test_the_last_billionth_still_fits(desk: Desk) -> None:
    reserved(desk, at_most=NANOS - 1)
    reserved(desk, at_most=1)
    reserved(desk, at_most=0)
    with pytest.raises(OverBudget):
        reserved(desk, at_most=1)


def test_a_budget_of_nothing_holds_nothing_and_no_bound_holds_everything(desk: Desk) -> None:
    with pytest.raises(OverBudget):
        reserved(desk, Share("day", "2026-09-21", 0), at_most=1)
    reserved(desk, Share("day", "2026-09-21", None), at_most=10**18)


def test_what_passes_is_distinguished_from_what_is_spent(desk: Desk, neighbour: Desk) -> None:
    made = reserved(neighbour, at_most=NANOS)
    with pytest.raises(OverBudget) as over:
        reserved(desk)
    assert over.value.spent[0].passes, "somebody who lives has reserved it"

    neighbour.writer.calls.settle(made, (DAY, MONTH), CallEnd(SETTLED, 1, NANOS), now=desk.now)
    with pytest.raises(OverBudget) as over:
        reserved(desk)
    assert not over.value.spent[0].passes


@pytest.mark.fault("F01")
def test_what_a_dead_process_reserved_counts_at_its_most_and_is_shown_as_unknown(desk: Desk, made: Made) -> None:
    with at_a_desk(made.another) as doomed:
        reserved(doomed, at_most=NANOS)
        assert states(desk.store) == [("reserved", 1.0, None)]
        desk.workers.return_rows(doomed.me, started=None, now=desk.now)

    assert states(desk.store) == [("unknown", 1.0, None)]
    with pytest.raises(OverBudget) as over:
        reserved(desk)
    assert not over.value.spent[0].passes, "nobody will give it back"


@pytest.mark.spec("B6-03")
def test_two_processes_at_once_never_exceed_a_budget(desk: Desk, neighbour: Desk, store: Store) -> None:
    refused: list[int] = []

    def spend(mine: Desk) -> None:
        for number in range(40):
            try:
                made = reserved(mine, at_most=4 * CENT)
            except OverBudget:
                refused.append(number)
                continue
            if number % 2:
                mine.writer.calls.settle(made, (DAY, MONTH), CallEnd(SETTLED, 1, 3 * CENT), now=mine.now)

    threads = [threading.Thread(target=spend, args=[each]) for each in (desk, neighbour)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    calls, held, spent = sums(store)["day"]
    assert held + spent <= 100
    assert held + spent > 96, "room for another call was left"
    assert (calls, len(refused)) == (len(states(store)), 80 - calls)
    rows = read_rows(store, "select sum(cost) from penstock_calls")
    assert rows[0][0] == (held + spent) * CENT


def test_services_have_budgets_of_their_own(desk: Desk, store: Store) -> None:
    for service in ("shop", "brand"):
        desk.writer.calls.reserve(call(NANOS, service=service), (DAY,), now=desk.now)
    assert read_rows(store, "select service, reserved from penstock_spending order by service") == [
        ("brand", NANOS),
        ("shop", NANOS),
    ]


def test_the_ledger_shows_what_a_person_wants_to_know(desk: Desk, store: Store) -> None:
    made = call(25 * CENT, run="r-1")
    desk.writer.calls.reserve(made, (DAY, Share("run", "r-1", None)), now=T0)
    columns = (
        "id, service, provider, operation, units, cost, at_most, correlation_id, run, state, created_at, settled_at"
    )
    [row] = read_rows(store, f"select {columns} from api_calls_ledger")
    assert row == (
        made.id.hex(),
        "shop",
        "brave",
        "web_search",
        None,
        0.25,
        0.25,
        (b"c" * 16).hex(),
        "r-1",
        "reserved",
        "2026-09-21T14:13:20Z",
        None,
    )


def test_calls_and_sums_go_after_four_hundred_days_in_portions(desk: Desk, store: Store) -> None:
    for _ in range(3):
        reserved(desk)
    desk.later(seconds=401 * DAYS)
    reserved(desk, Share("day", "2027-10-27", None))

    assert desk.upkeep.prune(now=desk.now, limit=2) == 2
    assert desk.upkeep.prune(now=desk.now, limit=100) == 3
    assert len(states(store)) == 1
    assert list(sums(store)) == ["day"]


# -- the schema ---------------------------------------------------------------------------------------------------

OLDER = ("drop view {0}api_calls_ledger", "drop table {0}penstock_calls", "drop table {0}penstock_spending")


def test_a_database_of_the_version_before_gets_the_tables(made: Made) -> None:
    with at_a_desk(made.store):
        pass
    match made.inspect:
        case SqliteInspect():
            file = apsw.Connection(made.store.location)
            for statement in OLDER:
                file.execute(statement.format(""))
            file.pragma("user_version", VERSION - 1)
            file.close()
        case PostgresInspect():
            before = f"update penstock.penstock_facts set value = '{VERSION - 1}' where name = 'schema'"
            with psycopg.connect(made.inspect._url, autocommit=True) as server:
                for statement in (*(each.format("penstock.") for each in OLDER), before):
                    server.execute(statement.encode())

    with at_a_desk(made.another) as desk:
        reserved(desk)
        assert states(desk.store) == [("reserved", 0.1, None)]
