"""Hundreds of kills of the sender, the carrier and the receiver of an outbox: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from random import Random

import penstock as ps
from penstock.testing import CRASH_POINTS, TestServices, virtual
from tests.extent import EVERYTHING

KILLS = 500 if EVERYTHING else 40
NEVER = 1_000_000  # crashes that make a message a suspect
MIGRATIONS = Path(__file__).parent / "outbox_migrations"
SENT = "insert into sent (brand, number) values (:brand, :number)"
GOT = "insert into got (id, brand, number) select coalesce(max(id), 0) + 1, :brand, :number from got"
POINTS = [point for point in CRASH_POINTS if point.startswith(("unit.", "handler.", "send.", "commit"))]


class Order(ps.Command, type="order.placed"):
    brand: str
    number: int


class Picked(ps.Event, type="order.picked"):
    brand: str
    number: int


class Trade:
    """The shop takes orders and sends each to the warehouse, in the order of its brand."""

    def __init__(self) -> None:
        self.app = app = ps.App("trade", apart=True, database="trade.db")
        self.shop = app.service("shop", migrations=MIGRATIONS / "shop")
        self.warehouse = app.service("warehouse", migrations=MIGRATIONS / "warehouse")
        self.placed = self.shop.queue("shop-orders", Order, crashes_max=NEVER, order_by=lambda each: each.brand)
        self.picked = self.warehouse.queue(
            "warehouse-events", Picked, crashes_max=NEVER, order_by=lambda each: each.brand
        )

        @self.placed.handler
        async def place(order: Order) -> None:
            self.shop.db.write(SENT, brand=order.brand, number=order.number)
            self.picked.send(Picked(brand=order.brand, number=order.number))

        @self.picked.handler
        async def pick(picked: Picked) -> None:
            await asyncio.sleep(0.02)
            self.warehouse.db.write(GOT, brand=picked.brand, number=picked.number)


@virtual
async def test_kills_of_either_side_lose_and_double_nothing(seed: int, note: Callable[[str], None]) -> None:
    trade, chance = Trade(), Random(seed)
    async with TestServices(trade.app, seed=seed) as town:
        number = kills = 0
        while kills < KILLS:
            for _ in range(chance.randrange(1, 4)):
                await town["shop"].send(trade.placed, Order(brand=chance.choice("abc"), number=number))
                number += 1
            victim = town[chance.choice(["shop", "warehouse"])]
            if chance.random() < 0.6:
                await victim.crash(at=chance.choice(POINTS), nth=chance.randrange(1, 4))
                await town.advance(chance.random() * 2)
            else:
                await town.advance(chance.random() / 10)
                await victim.kill()
            kills = sum(shop.workers_started - 1 for shop in town.shops.values())
            if number % 50 < 3:
                await town.advance(60)
        for shop in town.shops.values():
            assert shop._trap is not None
            shop._trap.armed.clear()
        for _ in range(200):
            await town.advance(60)
            if not [busy for shop in town.shops.values() for busy in await shop._busy()]:
                break
        await town.drain()

        sent = await trade.shop.db.rows("select brand, number from sent order by number limit 10000")
        got = await trade.warehouse.db.rows("select brand, number from got order by id limit 10000")
        assert len(sent) == number
        assert sorted(row.number for row in got) == [row.number for row in sent], "lost or doubled"
        for brand in "abc":
            numbers = [row.number for row in got if row.brand == brand]
            assert numbers == sorted(numbers), "out of order"
        note(f"outbox: {kills} kills, {number} messages, 0 lost, 0 doubled, in order")
