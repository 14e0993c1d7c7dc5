"""What type checkers must refuse. Each error has its `type: ignore`, and one that no error needs is an error itself.

mypy reads this file in `make types`, basedpyright in `make test-all`. Nothing here is executed.
"""

from __future__ import annotations

import penstock as ps
from penstock.testing import TestApp
from tests.typed.right import (
    Clerk,
    Lost,
    Note,
    Order,
    Prices,
    Shipped,
    anything,
    app,
    counters,
    events,
    gather,
    notes,
    orders,
    research,
    store,
    texts,
    web,
)

# -- payloads ---------------------------------------------------------------------------------------------------------


async def send_what_does_not_fit() -> None:
    orders.send(Shipped(id=1))  # type: ignore[arg-type]
    orders.send(Order(id="1"))  # type: ignore[arg-type]
    events.send(Order(id=1))  # type: ignore[arg-type]
    anything.send("text")  # type: ignore[arg-type]
    texts.send({"a": 1})  # type: ignore[arg-type]
    orders.send_batch([Shipped(id=1)])  # type: ignore[list-item]
    orders.send_batch([ps.Outgoing(payload=Shipped(id=1))])  # type: ignore[arg-type]
    orders.send_all([Shipped(id=1)])  # type: ignore[list-item]
    async with TestApp(app) as shop:
        await shop.send(orders, Shipped(id=1))  # type: ignore[misc]


def take(queue: ps.Queue[Shipped | Lost]) -> None: ...


take(orders)  # type: ignore[arg-type]

# -- handlers ---------------------------------------------------------------------------------------------------------


@orders.handler  # type: ignore[arg-type]
async def handle_another_type(event: Shipped) -> None: ...


@orders.handler  # type: ignore[arg-type]
async def handle_another_message(order: Order, message: ps.Message[Shipped]) -> None: ...


@orders.handler(name="again")  # type: ignore[arg-type]
async def handle_another_type_by_name(event: Shipped) -> None: ...


@orders.handler  # type: ignore[arg-type]
def handle_without_async(order: Order) -> None: ...


@events.handler  # type: ignore[arg-type]
async def handle_half_of_a_union(event: Shipped) -> None: ...


@events.handler(Shipped)  # type: ignore[arg-type]
async def handle_the_other_half(event: Lost) -> None: ...


@events.handler(Note)  # type: ignore[arg-type, call-arg]
async def handle_no_part_of_the_union(note: Note) -> None: ...


@notes.batch_handler  # type: ignore[arg-type]
async def handle_another_batch(batch: ps.Batch[Order]) -> None: ...


@orders.dead_letter_handler  # type: ignore[arg-type]
async def hear_of_an_order(order: Order) -> None: ...


@orders.repair  # type: ignore[arg-type]
async def repair_with_another_type(letter: ps.DeadLetter) -> Shipped | None: ...


events.handler(Clerk().take)  # type: ignore[arg-type]

# -- keywords ---------------------------------------------------------------------------------------------------------


async def misspell() -> None:
    ps.App("shop", datebase="a.db")  # type: ignore[call-arg]
    app.queue("a", Order, wall=5)  # type: ignore[call-arg]
    app.queue("b", retry=5)  # type: ignore[call-arg]
    app.queue("c", accepts=[Order])  # type: ignore[call-arg]
    app.queue("d", Order, retries="3")  # type: ignore[arg-type]
    app.cron("* * * * *", why="slowly")  # type: ignore[call-arg]
    app.workflow(wall=5)  # type: ignore[call-overload]
    app.object(type(counters["main"]), retry=5)  # type: ignore[call-arg]
    app.controller("b", gather=2)  # type: ignore[call-arg]
    app.pace("b", patience=2)  # type: ignore[call-arg]
    app.http(agent="Shop/1")  # type: ignore[call-arg]
    app.page_cache(app.blobs("pages"), web, age=5)  # type: ignore[call-arg]
    app.blobs("pages", expires=[])  # type: ignore[call-arg]
    app.gateway(budget=ps.Budgets(day=1.0))  # type: ignore[call-arg]
    app.model("analyst", paid=app.gateway())  # type: ignore[call-arg]
    app.get("/v1/a", scope="app:read")  # type: ignore[call-arg]
    app.post("/v1/a", cache=5)  # type: ignore[call-arg]
    app.unit(name="a")  # type: ignore[call-arg]
    await app.run(grace=5)  # type: ignore[call-arg]
    await app.alert("a", "b", "c", condition_key="d")  # type: ignore[call-arg]
    await app.once("a", gather, 7, retries=3)  # type: ignore[call-arg]
    orders.send(Order(id=1), dely=5)  # type: ignore[call-arg]
    orders.send_batch([Order(id=1)], every=5)  # type: ignore[call-arg]
    orders.handler(Order, named="a")  # type: ignore[call-overload]
    await app.dead.list(limits=5)  # type: ignore[call-arg]
    await app.dead.replay(1, canery=True)  # type: ignore[call-arg]
    ps.DeadLetterFilter(queues="orders")  # type: ignore[call-arg]
    ps.Retry(5, first_seconds=1.0)  # type: ignore[call-arg]
    ps.Ceiling(rows=5)  # type: ignore[call-arg]
    ps.Later(delay=5)  # type: ignore[call-arg]
    research.start(7, depth=True)  # type: ignore[call-arg]
    research.start("7")  # type: ignore[arg-type]
    await counters["main"].add(number=1)  # type: ignore[call-arg]
    await web.get("https://shop.example/", header={})  # type: ignore[call-arg]
    await web.page("https://shop.example/", timeout=5)  # type: ignore[call-arg]
    async with store.permit(patience=1.0):  # type: ignore[call-arg]
        pass
    async with TestApp(app, speed=1) as shop:  # type: ignore[call-arg]
        await shop.send(orders, Order(id=1), uniqe="a")  # type: ignore[call-arg]
        await shop.advance(second=5)  # type: ignore[call-arg]


@app.workflow
async def misspell_in_a_run(run: ps.Run) -> None:
    await run.step("gather", gather, 7, retry=5)  # type: ignore[call-arg]
    await run.step("gather", gather, "7")  # type: ignore[arg-type]
    await run.sleep(day=1)  # type: ignore[call-arg]
    await run.wait_for("approved", within=5)  # type: ignore[call-overload]
    await run.child("one", research, 7, depth=True)  # type: ignore[call-arg]
    await run.child("one", research, "7")  # type: ignore[arg-type]


class Misfit(Prices):
    async def pick(self, limit: str) -> list[int]:  # type: ignore[override]
        return []
