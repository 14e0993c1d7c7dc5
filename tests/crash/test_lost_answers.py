"""A connection that is lost at any statement of the engine's own: what it changes is changed once; nobody has to guess."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import psycopg
import pytest

from penstock.contracts.ledger import NotCommitted
from penstock.contracts.workers import HandlerRow
from penstock.model.usage import Measure
from penstock.storage.postgres.store import PostgresStore
from tests.contract.inspection import PostgresInspect, check_conservation
from tests.contract.material import ORDERS, Desk, message, rules
from tests.crash.injection import Injector, Talk
from tests.crash.journal import wait_until
from tests.crash.proxy import Link
from tests.flow.tampering import tamper
from tests.postgres import empty_database

pytestmark = pytest.mark.fault("F24")

SOME_WORK = Measure("select 1", 1, 2, 3, 4, 5, 0.006)
USED = "select coalesce(sum(executions), 0)::bigint from penstock.penstock_usage"
LIVING = "select count(distinct objid) from pg_locks where locktype = 'advisory' and classid = 20550 and granted"


class Harsh(Injector):
    """With `forgets` the others take the process for dead while it is cut off, and remove its row."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address
        self.forgets = False

    def _strike(self, link: Link, talk: Talk, batch: bytes) -> bytes:
        if self.forgets:
            tamper(self.address, "delete from penstock_workers")
            tamper(self.address, "delete from penstock_handlers")
        return super()._strike(link, talk, batch)


@pytest.fixture
def way() -> Iterator[Harsh]:
    harsh = Harsh(empty_database())
    yield harsh
    harsh.close()


@pytest.fixture
def desk(way: Harsh) -> Iterator[Desk]:
    desk = Desk(PostgresStore(way.url))
    desk.workers.register_queues([rules()])
    desk.workers.register_handlers([HandlerRow(ORDERS, "order", "handle")])
    yield desk
    desk.close()
    check_conservation(PostgresInspect(way.address))


def asked(way: Harsh, question: str) -> int:
    with psycopg.connect(way.address) as connection:
        (answer,) = connection.execute(question.encode()).fetchone() or (0,)
    return int(answer)


@pytest.mark.parametrize("fault", ["lost before", "lost after"])
@pytest.mark.parametrize("forgotten", [False, True])
def test_what_is_added_up_is_added_once(way: Harsh, desk: Desk, fault: str, forgotten: bool) -> None:
    way.forgets = forgotten
    for nth in count(1):
        way.arm(nth, fault)
        desk.upkeep.add_usage("2026-01", [("task", SOME_WORK)], now=desk.now)

        assert asked(way, USED) == nth, f"statement {nth}: {way.struck!r}"
        if not way.struck:
            break

    assert nth > 4, "it begins, adds, notes and commits"
    if forgotten:
        assert [row.id for row in desk.workers.listed()] == [desk.me]
        assert asked(way, "select count(*) from penstock.penstock_handlers") == 1


@pytest.mark.parametrize("fault", ["lost before", "lost after"])
@pytest.mark.parametrize("forgotten", [False, True])
@pytest.mark.parametrize("messages", [1, 2])
def test_a_group_is_saved_once(way: Harsh, desk: Desk, fault: str, forgotten: bool, messages: int) -> None:
    way.forgets = forgotten
    for nth in count(1):
        way.arm(nth, fault)
        try:
            desk.send(*(message() for _ in range(messages)))
        except NotCommitted:
            desk.send(*(message() for _ in range(messages)))

        assert len(PostgresInspect(way.address).messages()) == nth * messages, f"statement {nth}: {way.struck!r}"
        if not way.struck:
            break

    assert nth > (1 if messages == 1 else 3), "it begins, sends and commits; a lone message does so in one statement"


@pytest.mark.parametrize("fault", ["lost before", "lost after"])
def test_a_process_that_has_no_row_yet_begins_anew(way: Harsh, fault: str) -> None:
    for nth in count(1):
        way.arm(nth, fault)
        desk = Desk(PostgresStore(way.url))

        assert desk.me in [row.id for row in desk.workers.listed()], f"statement {nth}: {way.struck!r}"
        # A server notices in its own time that the connection which was cut is gone.
        wait_until(lambda: asked(way, LIVING) == 1, f"one living process after statement {nth}: {way.struck!r}")
        desk.workers.retire(desk.me, now=desk.now)
        desk.close()
        if not way.struck:
            break

    assert nth > 4
