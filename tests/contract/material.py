"""What the contract suite is made of: messages, units and a desk that drives one writer at a time of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import Any

from penstock.contracts.effects import (
    Atomic,
    Bindable,
    Effect,
    Once,
    OnceKey,
    SealedUnit,
    Settle,
    Transaction,
    Write,
    WriteMany,
)
from penstock.contracts.ledger import ClaimRequest, Committed
from penstock.contracts.store import Store
from penstock.model.message import PRIORITY_NORMAL, Delivery, NewMessage, checksum
from penstock.model.migration import Migration, read
from penstock.model.outcome import DONE, Settlement
from penstock.model.queue import QueueSettings
from penstock.model.retry import Retry
from penstock.runtime.groups import tell
from penstock.runtime.unit import caller

SECOND = 1_000_000
T0 = 1_790_000_000 * SECOND
ORDERS = "orders"
LEASE_SECONDS = 60

_numbers = count(1)


def message(
    body: bytes = b"{}",
    *,
    queue: str = ORDERS,
    priority: int = PRIORITY_NORMAL,
    due: int = T0,
    id: bytes | None = None,
    flags: int = 0,
    expires: int | None = None,
) -> NewMessage:
    id = id or next(_numbers).to_bytes(16, "big")
    return NewMessage(
        id, queue, priority, due, "order.placed", "tests", id, None, 0, 0, T0, checksum(id, body), body, flags, expires
    )


class Sheet(SealedUnit):
    """A sealed unit that is easy to fill in a test."""

    def write(self, sql: str, expect: int | None = None, /, **bound: Bindable) -> Write:
        call = Write(self, sql, bound, expect, caller())
        self.effects.append(call)
        return call

    def write_many(self, sql: str, rows: Sequence[dict[str, Bindable]]) -> WriteMany:
        call = WriteMany(self, sql, list(rows), caller())
        self.effects.append(call)
        return call

    def atomically(self, function: Callable[[Transaction], object]) -> Atomic:
        call = Atomic(self, function, caller())
        self.effects.append(call)
        return call


def sheet(
    *effects: Effect,
    delivery: Delivery | None = None,
    settlement: Settlement | None = None,
    once: str | None = None,
    scope: bytes = b"",
    result: bytes = b"null",
) -> Sheet:
    unit = Sheet("test")
    unit.effects += effects
    if delivery is not None:
        unit.fences.append(Settle(delivery, settlement, int(bool(effects))))
    if once is not None:
        unit.fences.append(Once(OnceKey(scope, once), result))
    return unit


def done(delivery: Delivery, *sends: NewMessage) -> Sheet:
    return sheet(*sends, delivery=delivery, settlement=DONE)


def want(queue: str = ORDERS, limit: int = 10, lease_seconds: float = LEASE_SECONDS) -> ClaimRequest:
    return ClaimRequest(queue, limit, int(lease_seconds * SECOND))


def rules(name: str = ORDERS, *, retries: int = 3, crashes_max: int = 3) -> QueueSettings:
    return QueueSettings(name, retry=Retry(retries, 30.0, 600.0), crashes_max=crashes_max)


def migration(text: str, name: str = "0001_shop.sql") -> Migration:
    return read(name, text)


SHOP = migration("create table shop (id integer primary key, name text not null, stock integer not null default 0)")
NEW_ITEM = "insert into shop (id, name) values (:id, :name)"
ITEMS = "select id, name from shop order by id"


class Desk:
    """One writer, and a time that moves only when a test says so."""

    def __init__(self, store: Store, *, now: int = T0) -> None:
        self.store = store
        self.now = now
        self.writer = store.open_writer(now=now)
        self.ledger = self.writer.ledger
        self.workers = self.writer.workers
        self.upkeep = self.writer.upkeep
        self.me = self.workers.me
        self._closed = False

    def commit(self, *units: SealedUnit, wants: Sequence[ClaimRequest] = (), sweep: bool = False) -> Committed:
        committed = self.ledger.commit(units, wants, now=self.now, sweep=sweep)
        tell(committed)
        for unit in units:
            unit.committed = True
        return committed

    def send(self, *messages: NewMessage) -> None:
        self.commit(sheet(*messages))

    def claim(self, limit: int = 10, queue: str = ORDERS, lease_seconds: float = LEASE_SECONDS) -> list[Delivery]:
        return self.commit(wants=[want(queue, limit, lease_seconds)]).claimed

    def claim_one(self, queue: str = ORDERS) -> Delivery:
        (delivery,) = self.claim(1, queue)
        return delivery

    def given_one(self, **options: Any) -> Delivery:
        """A message that was sent and claimed."""
        self.send(message(**options))
        return self.claim_one(options.get("queue", ORDERS))

    def settle(self, delivery: Delivery, settlement: Settlement = DONE) -> None:
        self.commit(sheet(delivery=delivery, settlement=settlement))

    def sweep(self) -> Committed:
        return self.commit(sweep=True)

    def open_shop(self) -> None:
        self.upkeep.migrate([SHOP], now=self.now)

    def later(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.writer.close()


def read_rows(store: Store, sql: str, bound: Mapping[str, Bindable] | None = None) -> list[tuple[Any, ...]]:
    """What a fresh reader sees."""
    reader = store.open_reader()
    try:
        return reader.read(sql, dict(bound or {}), rows_max=10_000).values
    finally:
        reader.close()


def bodies(deliveries: Iterable[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in deliveries]
