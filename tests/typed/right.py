"""What a typed program may write: mypy (`make types`) and basedpyright (`make test-all`) find no error here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

import msgspec

import penstock as ps
from penstock.testing import TestApp


class Order(ps.Command):
    id: int


class Shipped(ps.Event):
    id: int


class Lost(ps.Event):
    id: int


class Note(msgspec.Struct):
    text: str


@dataclass
class Reading:
    value: float


app = ps.App("shop")
orders = app.queue(
    "orders", Order, parallel=8, timeout=timedelta(minutes=1), retries=ps.Retry(5, first=1.0, longest=60.0)
)
events = app.queue("events", Shipped | Lost, batch=10, batch_wait=0.5)
notes = app.queue("notes", Note, retries=3)
readings = app.queue("readings", Reading)
texts = app.queue("texts", str)
anything = app.queue("anything")
numbers = app.queue("numbers", dict[str, int])

assert_type(orders, ps.Queue[Order])
assert_type(events, ps.Queue[Shipped | Lost])
assert_type(notes, ps.Queue[Note])
assert_type(readings, ps.Queue[Reading])
assert_type(texts, ps.Queue[str])
assert_type(anything, ps.Queue[dict[str, Any]])
assert_type(numbers, ps.Queue[dict[str, int]])


@orders.handler
async def ship(order: Order) -> ps.Later | None:
    events.send(Shipped(id=order.id), delay=timedelta(hours=1))
    return None


@orders.handler(name="audit")
async def note(order: Order, message: ps.Message[Order]) -> None:
    assert_type(message.body, Order)
    notes.send(Note(f"{order.id} at attempt {message.attempt}"), unique=str(order.id))


@events.handler(Shipped)
async def shipped(event: Shipped) -> None: ...


@events.handler(Lost, name="lost again")
async def lost(event: Lost, message: ps.Message[Lost]) -> None:
    assert_type(message.body, Lost)


@events.handler
async def either(event: Shipped | Lost) -> None: ...


@notes.batch_handler
async def read(batch: ps.Batch[Note]) -> None:
    for message in batch.within(timedelta(seconds=5)):
        async with message:
            assert_type(message.body.text, str)


@texts.handler
async def text(text: str) -> None: ...


@anything.handler
async def keep(body: dict[str, Any]) -> None: ...


@orders.dead_letter_handler
async def report(letter: ps.DeadLetter) -> None: ...


@orders.repair
async def repair(letter: ps.DeadLetter) -> Order | None:
    return Order(id=letter.id)


class Clerk:
    async def take(self, order: Order) -> None: ...


orders.handler(Clerk().take)


def announce(queue: ps.Queue[Shipped]) -> None:
    queue.send(Shipped(id=1))


async def send() -> None:
    announce(events)  # a queue that takes more is a queue that takes these
    orders.send_batch([Order(id=1), ps.Outgoing(payload=Order(id=2), delay=5)])
    events.send_all((Lost(id=number) for number in range(9)), every=timedelta(seconds=1))
    for chunk in orders.chunks([Order(id=1)]):
        orders.send_batch(chunk)
    await ship(Order(id=1))
    await app.dead.replay(ps.DeadLetterFilter(queue="orders"), rate=5)
    async with TestApp(app) as shop:
        await shop.send(events, Lost(id=1), delay=timedelta(minutes=1))


@app.cron("0 4 * * *", timeout=60)
async def sweep(tick: ps.Tick) -> None: ...


@app.workflow(retries=ps.Retry(2), timeout=timedelta(minutes=30))
async def research(run: ps.Run, cluster: int, deep: bool = False) -> str:
    found = await run.step("gather", gather, cluster, retries=ps.Retry(9, first=0.1), timeout=timedelta(minutes=5))
    await run.sleep(timedelta(days=1))
    return assert_type(found, str)


@app.workflow
async def parent(run: ps.Run) -> None:
    assert_type(await run.child("one", research, 7, deep=True), str)


async def gather(cluster: int) -> str:
    return str(cluster)


class Counter(ps.Object):
    count: int = 0

    async def add(self, amount: int) -> int:
        return self.count + amount


counters = app.object(Counter, retries=ps.Retry(6, first=2.0))
store = app.pace("shop.example", rate=(0.5, 5.0), max_wait=timedelta(seconds=10))
web = app.http(user_agent="Shop/1", bounds=ps.Bounds())
pages = app.page_cache(app.blobs("pages"), web, max_age=timedelta(days=2))


@app.controller("prices", timeout=timedelta(seconds=20), idle_backoff=(1.0, timedelta(minutes=2)))
class Prices(ps.Controller[int]):
    async def pick(self, limit: int) -> list[int]:
        return [limit]


async def use() -> None:
    assert_type(await counters["main"].add(1), int)
    assert_type(await research.start(7).result(timeout=timedelta(minutes=1)), str)
    assert_type(await app.once("key", gather, 7), str)
    async with store.permit(max_wait=1.0):
        await web.get("https://shop.example/", robots=True)
