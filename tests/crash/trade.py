"""Two services with a database each: the shop takes orders and sends each to the warehouse through its outbox."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.cli import worker as cli_worker
from penstock.cli.listening import listen

OUT_OF_REACH = 1_000_000  # crashes of a message that only happened to be there when its worker was killed
ORDERED = "TRADE_ORDERED"  # the variable that asks for the order of each brand
MIGRATIONS = Path(__file__).parents[1] / "flow" / "outbox_migrations"
SENT = "insert into sent (brand, number) values (:brand, :number)"
GOT = "insert into got (id, brand, number) select coalesce(max(id), 0) + 1, :brand, :number from got"


class Order(ps.Command, type="order.placed"):
    brand: str
    number: int


class Picked(ps.Event, type="order.picked"):
    brand: str
    number: int


class Batch(ps.Event, type="orders"):
    orders: list[Order]


def _brand(each: Any) -> str:
    return str(each.brand)


order_by = _brand if os.environ.get(ORDERED) else None
app = ps.App("trade", apart=True)
shop = app.service("shop", migrations=MIGRATIONS / "shop")
warehouse = app.service("warehouse", migrations=MIGRATIONS / "warehouse")
placed = shop.queue("shop-orders", Order, crashes_max=OUT_OF_REACH, order_by=order_by)
picked = warehouse.queue("warehouse-events", Picked, crashes_max=OUT_OF_REACH, order_by=order_by)


@shop.post("/orders", auth=ps.ServiceKey())
async def take(orders: Batch) -> int:
    """Take orders, once each however often they are posted."""
    for order in orders.orders:
        placed.send(order, unique=str(order.number))
    return len(orders.orders)


@placed.handler
async def place(order: Order) -> None:
    await asyncio.sleep(0.01)
    shop.db.write(SENT, brand=order.brand, number=order.number)
    picked.send(Picked(brand=order.brand, number=order.number))


@picked.handler
async def pick(event: Picked) -> None:
    await asyncio.sleep(0.005)
    warehouse.db.write(GOT, brand=event.brand, number=event.number)


def run(service: str, port: int) -> int:
    """Run the worker of a service with its HTTP server, as a supervisor starts it."""
    listening = listen("127.0.0.1", port)
    return cli_worker.main(["tests.crash.trade:app", "--service", service, "--listen", str(listening.detach())])
