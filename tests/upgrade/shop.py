"""The app whose database 0.1.0 left behind: something in every state that a later version has to continue."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

import penstock as ps

DEAD = "nothing takes it"


class Order(ps.Command, type="order"):
    item: str


class Verdict(msgspec.Struct):
    ok: bool
    by: str = ""


class Till(ps.Object):
    count: int = 0

    async def add(self) -> int:
        self.count += 1
        self.set_alarm(after=3_600)
        return self.count

    async def alarm(self) -> None:
        self.count += 100


class Shop:
    """One app, with a note of everything that its handlers were called with."""

    def __init__(self) -> None:
        self.app = app = ps.App("shop", database="shop.db", migrations=Path(__file__).parent / "migrations")
        self.noted: list[str] = []
        self.busy_with: set[str] = set()  # items whose handler does not return
        self.broken: set[str] = set()  # items whose handler raises
        self.orders = orders = app.queue("orders", Order, retries=3)
        self.pace = app.pace("stripe.test", rate=(0.5, 50.0))
        self.tills = app.object(Till, tag="v1")

        @orders.handler(Order)
        async def ship(order: Order) -> None:
            if order.item in self.busy_with:
                await asyncio.sleep(600)
            if order.item in self.broken:
                raise ps.Gone(DEAD) if order.item.startswith("dead") else ConnectionError("no answer")
            self.noted.append(order.item)
            app.db.write("insert into shipped (item) values (:item)", order)

        @app.cron("0 4 * * *", reason="the shop is swept at night")
        async def sweep() -> None:
            self.noted.append("swept")

        @app.workflow
        async def approval(run: ps.Run, item: str) -> str:
            await run.step("ask", self.ask, item)
            verdict = await run.wait_for("verdict", type=Verdict, timeout=86_400)
            await run.sleep(seconds=7_200)
            return await run.step("answer", self.answer, item, verdict.ok)

        self.approval = approval

    async def ask(self, item: str) -> None:
        self.noted.append(f"asked {item}")

    async def answer(self, item: str, ok: bool) -> str:
        self.noted.append(f"answered {item}")
        return f"{item} {'approved' if ok else 'refused'}"
