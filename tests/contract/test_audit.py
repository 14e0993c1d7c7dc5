"""The audit at the contract: one row for an effect that was committed, in its transaction, and none for one that was not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from penstock.contracts.audit import Audit, Key
from penstock.contracts.effects import Edit, Resolve
from penstock.contracts.ledger import NotCommitted, StaleUnits
from penstock.contracts.operations import Tuning
from penstock.contracts.store import Store
from penstock.model.errors import BadMigration, StatementFailed
from penstock.model.ids import derived
from penstock.model.migration import read
from penstock.model.outcome import Dead, Failure
from penstock.storage import upkeep
from penstock.storage.audit import VALUE_LENGTH_MAX
from tests.contract.material import NEW_ITEM, ORDERS, T0, Desk, Sheet, message, read_rows, sheet

ROWS = "select verb, kind, name, actor, origin, at, before, after, count from penstock_audit order by at, name"
DIED = Dead("exhausted", Failure("Boom", "it broke"))


def audit(verb: str, kind: str, name: str, key: Key | None = None, *, at: int = T0, **details: Any) -> Audit:
    id = derived(b"0123456789abcdef", verb, kind, name, str(at))
    return Audit(id, at, "ada@db1", "cli", verb, kind, name, name if key is None else key, details)


def noted(*audits: Audit, unit: Sheet | None = None) -> Sheet:
    unit = unit or sheet()
    unit.effects += audits
    return unit


def rows(store: Store) -> list[tuple[Any, ...]]:
    found = read_rows(store, ROWS)
    return [(*each[:6], *(each[at] and msgspec.json.decode(each[at]) for at in (6, 7)), each[8]) for each in found]


def test_an_operation_and_its_audit_are_one_commit(desk: Desk, store: Store) -> None:
    operations = desk.writer.operations
    desk.writer.audited(audit("queues pause", "queue", ORDERS), lambda: operations.pause(ORDERS, paused=True))

    assert rows(store) == [
        ("queues pause", "queue", ORDERS, "ada@db1", "cli", T0, {"paused": 0}, {"paused": 1}, 1),
    ]


def test_an_operation_that_changes_nothing_leaves_no_audit(desk: Desk, store: Store) -> None:
    operations = desk.writer.operations
    desk.writer.audited(audit("queues resume", "queue", ORDERS), lambda: operations.pause(ORDERS, paused=False))
    desk.writer.audited(audit("queues pause", "queue", "none"), lambda: operations.pause("none", paused=True))
    purge = audit("queues purge", "queue", ORDERS, purged="all")
    desk.writer.audited(purge, lambda: operations.purge(ORDERS, limit=9, now=T0))

    assert rows(store) == []


def test_an_operation_that_fails_leaves_no_audit(desk: Desk, store: Store) -> None:
    bad = read("0001_bad.sql", "create table one (a integer); create table one (a integer);")
    with pytest.raises(BadMigration):
        desk.writer.audited(
            audit("migrate", "database", "", applied=["0001_bad"]), lambda: desk.upkeep.migrate([bad], now=T0)
        )

    assert rows(store) == []
    desk.writer.operations.pause(ORDERS, paused=True)
    assert rows(store) == []  # and the next operation is not taken for it


def test_migrations_in_one_call_are_one_row(desk: Desk, store: Store) -> None:
    files = [read(f"000{n}_it.sql", f"create table it_{n} (a integer)") for n in (1, 2)]
    noted = audit("migrate", "database", "", applied=["0001_it", "0002_it"])
    desk.writer.audited(noted, lambda: desk.upkeep.migrate(files, now=T0))

    assert [(each[0], each[7], each[8]) for each in rows(store)] == [
        ("migrate", {"applied": ["0001_it", "0002_it"]}, 2)
    ]


def test_commits_of_one_operation_add_up_in_one_row(desk: Desk, store: Store) -> None:
    desk.send(*(message(b"%d" % number) for number in range(5)))
    purge = audit("queues purge", "queue", ORDERS, purged="all")
    while desk.writer.audited(purge, lambda: desk.writer.operations.purge(ORDERS, limit=2, now=T0)):
        pass

    assert [(each[0], each[8]) for each in rows(store)] == [("queues purge", 5)]


def test_a_unit_and_its_audit_are_one_commit(desk: Desk, store: Store) -> None:
    unit = noted(audit("queues send", "queue", ORDERS, ids=["a", "b"]), unit=sheet(message(), message()))
    desk.commit(unit, sheet(message()))

    assert [(each[0], each[7], each[8]) for each in rows(store)] == [("queues send", {"ids": ["a", "b"]}, 2)]


def test_a_unit_that_fails_leaves_no_audit_and_others_of_its_group_keep_theirs(desk: Desk, store: Store) -> None:
    desk.open_shop()
    stale = desk.given_one()
    desk.settle(stale)
    lost = noted(audit("lost", "queue", ORDERS, sent=1), unit=sheet(message(), delivery=stale))
    good = noted(audit("good", "queue", ORDERS, sent=1), unit=sheet(message()))
    with pytest.raises(StaleUnits):
        desk.commit(lost, good)
    assert rows(store) == []

    bad = noted(audit("bad", "queue", ORDERS, sent=1), unit=sheet(message()))
    bad.write(NEW_ITEM, id=1, name=None)
    with pytest.raises((StatementFailed, NotCommitted)):
        desk.commit(bad)
    assert rows(store) == []

    desk.commit(good)
    assert [each[0] for each in rows(store)] == ["good"]


def test_a_letter_is_shown_before_and_after_without_its_secrets(desk: Desk, store: Store) -> None:
    desk.settle(desk.given_one(body=b'{"item":"a","password":"hunter22"}'), DIED)
    edit = noted(audit("dead edit", "dead", "1", 1))
    edit.effects.append(Edit(1, b'{"item":"b","password":"hunter22"}'))
    gone = noted(audit("dead discard", "dead", "1", 1, at=T0 + 1, letters=[1]))
    gone.effects.append(Resolve(1, "discarded", "test data"))
    again = noted(audit("dead discard", "dead", "1", 1, at=T0 + 2, letters=[1]))
    again.effects.append(Resolve(1, "discarded", "test data"))
    for unit in (edit, gone, again):
        desk.commit(unit)

    edited, discarded = rows(store)
    assert edited[6] == {"body": {"item": "a", "password": "[redacted]"}}
    assert edited[7] == {"body": {"item": "b", "password": "[redacted]"}}
    assert discarded[6] == {"resolution": None, "note": None}
    assert discarded[7] == {"letters": [1], "resolution": "discarded", "note": "test data"}


def test_what_an_audit_keeps_is_bounded(desk: Desk, store: Store) -> None:
    desk.commit(noted(audit("queues send", "queue", "q" * 1_000, ids=["x" * 100] * 1_000)))
    desk.commit(noted(audit("queues send", "queue", "many", **{f"k{n}": n for n in range(100)})))

    (long,) = [each for each in rows(store) if each[2] != "many"]
    (many,) = [each for each in rows(store) if each[2] == "many"]
    assert len(long[7]["ids"]) == VALUE_LENGTH_MAX + 3
    assert len(long[2]) == 300
    assert len(many[7]) == 20


def test_a_tuned_queue_shows_both_values(desk: Desk, store: Store) -> None:
    tune = desk.writer.operations.tune
    desk.writer.audited(audit("queues tune", "queue", ORDERS), lambda: tune(ORDERS, Tuning(3, None)))
    later = audit("queues tune", "queue", ORDERS, at=T0 + 1)
    desk.writer.audited(later, lambda: tune(ORDERS, Tuning(4, 2.5)))

    assert [each[6:8] for each in rows(store)] == [
        ({"parallel_tuned": None}, {"parallel_tuned": 3}),
        ({"parallel_tuned": 3, "rate_tuned": None}, {"parallel_tuned": 4, "rate_tuned": 2.5}),
    ]


def test_old_rows_and_those_beyond_the_bound_are_pruned(
    desk: Desk, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        desk.commit(noted(audit("queues send", "queue", str(number), at=T0 + number * upkeep.DAY_MICROS, n=1)))
    now = T0 + upkeep.AUDIT_KEPT_DAYS * upkeep.DAY_MICROS

    desk.upkeep.prune(now=now + 1, limit=100)
    assert [each[2] for each in rows(store)] == ["1", "2", "3", "4", "5"]

    monkeypatch.setattr(upkeep, "AUDIT_ROWS_MAX", 2)
    desk.upkeep.prune(now=now, limit=100)
    assert [each[2] for each in rows(store)] == ["4", "5"]
