"""An order across several services: a payment is taken once although the worker dies, and refunded if nothing is in stock."""

from __future__ import annotations

import asyncio
import os

import penstock as ps
from penstock.testing import TestApp, virtual

app = ps.App("orders")
stock = {"lamp": 1}


class Bank:
    """An external service that deduplicates payments by their idempotency key."""

    def __init__(self) -> None:
        self.paid: dict[str, int] = {}
        self.calls = 0

    async def pay(self, key: str, cents: int) -> None:
        self.calls += 1
        await asyncio.sleep(1)
        self.paid.setdefault(key, cents)


bank = Bank()


async def charge(cents: int) -> str:
    key = ps.step().key  # the same on every attempt of this step, also after a crash: an order is paid once
    await bank.pay(key, cents)
    return key


async def refund(payment: str, cents: int) -> None:
    await bank.pay(f"{payment}/refund", -cents)


async def pick(item: str) -> str:
    if not stock.get(item):
        raise ps.Gone(f"no {item} in stock")  # permanent: not retried
    stock[item] -= 1
    return f"package with a {item}"


@app.workflow
async def shipping(run: ps.Run, item: str) -> str:
    package = await run.step("pick", pick, item)
    await run.sleep(hours=8)  # the carrier collects packages in the evening
    return f"{package}, shipped"


@app.workflow
async def order(run: ps.Run, item: str, cents: int) -> str:
    payment = await run.step("charge", charge, cents)
    try:
        sent: str = await run.child("shipping", shipping, item)
    except ps.ChildFailed as error:
        await run.step("refund", refund, payment, cents)
        return f"refunded: {error}"
    return sent


@virtual
async def main() -> None:
    async with TestApp(app, database=os.environ.get("PENSTOCK_DATABASE")) as world:
        await world.crash(at="step.after")  # the worker dies after the payment and before its commit
        async with world.unit():
            first = order["order-1"].start("lamp", 4_900)
        await world.advance(hours=1)
        async with world.unit():
            second = order["order-2"].start("lamp", 4_900)
            order["order-2"].start("lamp", 4_900)  # a second click: the id has one run
        await world.advance(hours=8)
        for handle in (first, second):
            print(f"{handle.id}: {await handle.result()}")
        print(f"the bank was called {bank.calls} times and has {sum(bank.paid.values()) / 100:.2f}, for one lamp")


if __name__ == "__main__":
    main()
