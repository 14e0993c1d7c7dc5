"""Simulations that tests run: a shop that keeps its word whatever befalls it, and five that make a typical mistake each."""

from __future__ import annotations

import asyncio
import itertools
from datetime import timedelta
from typing import Any

import penstock as ps
from penstock.queues.queue import Queue
from penstock.testing import Simulation

NEXT_INVOICE = """
insert into effects (what, amount)
select 'invoice', coalesce(max(amount), 0) + 1 from effects where what = 'invoice'
"""
SEAT_IF_FREE = """
insert into effects (what, amount)
select 'seat', :number where (select count(*) from effects where what = 'seat') < 2
"""


class Order(ps.Command, type="order"):
    number: int


class Till(ps.Object):
    orders: tuple[int, ...] = ()

    async def put(self, number: int) -> int:
        self.orders = tuple(sorted({*self.orders, number}))
        return len(self.orders)

    async def counted(self) -> int:
        return len(self.orders)


class Orders(Simulation):
    """Some orders at times of their own. Each is to be written down once."""

    calm = timedelta(minutes=20)
    orders: Queue[Any]
    count = 0

    def make(self) -> ps.App:
        app = ps.App("checkout")
        self.orders = app.queue("orders", Order, parallel=5)
        self.serve(app)
        return app

    def serve(self, app: ps.App) -> None:
        raise NotImplementedError

    async def scenario(self) -> None:
        self.count = self.random.randint(1, 5)
        for number in range(self.count):
            await self.send(self.orders, Order(number=number))
            await self.advance(seconds=self.random.choice((0, 0.1, 5)))

    async def in_the_end(self) -> None:
        assert await self.written() == self.numbers

    @property
    def numbers(self) -> list[int]:
        return list(range(self.count))

    async def written(self, what: str = "order") -> list[int]:
        return await self.db.column("select amount from effects where what = :what order by amount", what=what)


def write(app: ps.App, number: int, what: str = "order") -> None:
    app.db.write("insert into effects (what, amount) values (:what, :number)", number=number, what=what)


class Shop(Orders):
    """A queue, an object and a workflow, and two services that know what they have done by a key."""

    def prepare(self) -> None:
        self.charged: dict[str, int] = {}
        self.parcels: dict[str, int] = {}

    async def charge(self, key: str, number: int) -> None:
        self.charged.setdefault(key, number)

    async def post(self, key: str, number: int) -> None:
        self.parcels.setdefault(key, number)

    def serve(self, app: ps.App) -> None:
        charge, post = self.service(self.charge), self.service(self.post)
        tills = self.tills = app.object(Till, tag="v1")

        async def parcel(number: int) -> None:
            await post(ps.step().key, number)

        async def done(number: int) -> None:
            write(app, number, "shipped")

        @app.workflow
        async def shipping(run: ps.Run, number: int) -> None:
            await run.step("parcel", parcel, number)
            await run.sleep(minutes=5)
            await run.step("done", done, number)

        @self.orders.handler(Order)
        async def pay(order: Order, message: ps.Message[Order]) -> None:
            await charge(message.id, order.number)
            await tills["main"].put(order.number)
            write(app, order.number)
            shipping[f"order-{order.number}"].start(order.number)

    async def always(self) -> None:
        assert {*await self.written()} <= {*self.charged.values()}
        assert {*await self.written("shipped")} <= {*self.parcels.values()}

    async def in_the_end(self) -> None:
        await super().in_the_end()
        assert (
            sorted(self.charged.values())
            == sorted(self.parcels.values())
            == await self.written("shipped")
            == self.numbers
        )
        assert await self.tills["main"].counted() == self.count


# -- mistakes, each beside what is right ------------------------------------------------------------------


class EffectBeforeTheCommit(Orders):
    """A mail goes out in the handler, and the commit may still fail. The mended one puts it into a table, in its unit."""

    mended = False

    def prepare(self) -> None:
        self.mailed: list[int] = []

    def serve(self, app: ps.App) -> None:
        @self.orders.handler(Order)
        async def confirm(order: Order) -> None:
            if self.mended:
                write(app, order.number, "mail")
            else:
                self.mailed.append(order.number)
            write(app, order.number)

    async def always(self) -> None:
        mailed = self.mailed + await self.written("mail")
        assert len({*mailed}) == len(mailed), f"mailed twice: {mailed}"


class CounterInMemory(Orders):
    """Invoices are numbered by what the process remembers, and the next process begins anew."""

    mended = False

    def serve(self, app: ps.App) -> None:
        numbers = itertools.count(1)

        @self.orders.handler(Order)
        async def invoice(order: Order) -> None:
            write(app, order.number)
            if self.mended:
                app.db.write(NEXT_INVOICE)
            else:
                write(app, next(numbers), "invoice")

    async def in_the_end(self) -> None:
        await super().in_the_end()
        assert await self.written("invoice") == [number + 1 for number in self.numbers]


class NoIdempotencyKey(Orders):
    """A card is charged by a service that is not told which call repeats another."""

    mended = False

    def prepare(self) -> None:
        self.charged: list[int] = []
        self.keys: set[str] = set()

    async def charge(self, number: int, key: str | None) -> None:
        if key is None or key not in self.keys:
            self.charged.append(number)
            self.keys.add(key or "")

    def serve(self, app: ps.App) -> None:
        charge = self.service(self.charge)

        @self.orders.handler(Order)
        async def pay(order: Order, message: ps.Message[Order]) -> None:
            await charge(order.number, message.id if self.mended else None)
            write(app, order.number)

    async def in_the_end(self) -> None:
        await super().in_the_end()
        assert sorted(self.charged) == self.numbers


class CheckThenWrite(Orders):
    """Two seats for five orders: a handler looks whether one is free, and writes when another may have taken it."""

    mended = False

    def serve(self, app: ps.App) -> None:
        @self.orders.handler(Order)
        async def book(order: Order) -> None:
            if self.mended:
                app.db.write(SEAT_IF_FREE, number=order.number)
            elif await app.db.value("select count(*) from effects where what = 'seat'") < 2:
                write(app, order.number, "seat")
            write(app, order.number)

    async def always(self) -> None:
        assert len(await self.written("seat")) <= 2


class TimedOutMeansNotDone(Orders):
    """A call that takes too long is taken for one that did not happen. The mended one asks again, under the same key."""

    mended = False

    def prepare(self) -> None:
        self.charged: dict[str, int] = {}

    async def charge(self, key: str, number: int) -> None:
        self.charged[key] = number

    def serve(self, app: ps.App) -> None:
        charge = self.service(self.charge)

        @self.orders.handler(Order)
        async def pay(order: Order, message: ps.Message[Order]) -> None:
            try:
                async with asyncio.timeout(3):
                    await charge(message.id, order.number)
            except TimeoutError:
                if self.mended:
                    raise
                write(app, order.number, "given up")
            write(app, order.number)

    async def in_the_end(self) -> None:
        await super().in_the_end()
        assert not {*await self.written("given up")} & {*self.charged.values()}, "charged, and told that it was not"


MISTAKES = (EffectBeforeTheCommit, CounterInMemory, NoIdempotencyKey, CheckThenWrite, TimedOutMeansNotDone)
