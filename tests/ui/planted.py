"""An app with something of everything, and two hours of its life in virtual time: what the tests and screenshots look at."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path

import penstock as ps
from penstock.config import Config, DashboardConfig
from penstock.runtime.audit import operated_by
from penstock.testing import TestApp

LIMIT_PER_SECOND = 2.5  # of the service that `prices` asks, which it does not say


class PageFound(ps.Event, type="page.found"):
    url: str
    words: int = 0


class OrderPlaced(ps.Command, type="order.placed"):
    item: str
    count: int = 1


class MailDue(ps.Command, type="mail.due"):
    to: str
    subject: str


class Cart(ps.Object):
    items: list[str] = []  # noqa: RUF012 (every object gets a copy)

    async def add(self, item: str) -> int:
        self.items = [*self.items, item]
        return len(self.items)


def market_app(name: str = "market", **config: object) -> ps.App:
    """Return an app whose handlers fail in a few ways that repeat."""
    given: dict[str, object] = {"dashboard": DashboardConfig(hosts=("shop.example",)), **config}
    app = ps.App(name, config=Config(**given), migrations="none")  # type: ignore[arg-type]
    found = app.queue("found", PageFound, parallel=4, retries=2)
    orders = app.queue("orders", OrderPlaced, retries=1)
    mails = app.queue("mails", MailDue, rate=0.5, retries=1)
    app.queue("imports")
    carts = app.object(Cart)

    @found.handler
    async def index(page: PageFound) -> None:
        if "missing" in page.url:
            raise ps.Gone(f"404 for {page.url}")
        if "slow" in page.url:
            raise TimeoutError(f"no answer from {page.url} in 30 s")

    @orders.handler
    async def book(order: OrderPlaced) -> None:
        if order.count > 90:
            raise ValueError(f"{order.count} of {order.item} are more than there are")
        await carts[order.item].add(order.item)

    @mails.handler
    async def deliver(mail: MailDue) -> None:
        return

    @app.cron("*/5 * * * *", reason="shops change their pages during the day")
    async def crawl() -> None:
        return

    @app.cron("0 3 * * *", reason="the night is quiet", zone="Europe/Berlin")
    async def compact() -> None:
        return

    @app.cron("*/15 * * * *", reason="the exchange publishes every quarter of an hour")
    async def rates() -> None:
        if (await app.db.now())[14:16] == "30":
            raise ConnectionError("the exchange answered 502")

    starts: list[float] = []

    @app.controller("prices", parallel=4, rate=(0.1, 20.0))
    class Prices(ps.Controller[str]):
        async def pick(self, limit: int) -> list[str]:
            return [f"hat {number}" for number in range(limit)]

        async def work(self, item: str) -> None:
            now = asyncio.get_running_loop().time()
            starts[:] = [at for at in starts if at > now - 10]
            if len(starts) >= LIMIT_PER_SECOND * 10:
                raise ps.Throttled(retry_after=10)
            starts.append(now)
            await asyncio.sleep(0.1)

    @app.workflow(retries=2)
    async def research(run: ps.Run, topic: str) -> dict[str, object]:
        pages = await run.step("collect pages", _pages, topic)
        await run.sleep(90)
        text = await run.step("write summary", _summary, topic, pages)
        if topic.startswith("approve"):
            await run.wait_for("approved", bool)
        await run.step("publish", _publish, text)
        return {"topic": topic, "pages": pages}

    return app


async def _pages(topic: str) -> int:
    return len(topic) * 3


async def _summary(topic: str, pages: int) -> str:
    if topic == "broken":
        raise RuntimeError("the model answered with 500 three times")
    return f"{topic} in {pages} pages"


async def _publish(text: str) -> str:
    return f"https://shop.example/{len(text)}"


async def plant(folder: Path, *, start: datetime, hours: float = 2.0, app: ps.App | None = None) -> ps.App:
    """Let the app live for some hours in virtual time, with a database in the folder, and return it."""
    app = app or market_app()
    async with TestApp(app, folder=folder, start=start) as shop:
        await live(shop, hours)
    return app


async def live(shop: TestApp, hours: float = 2.0) -> None:
    app = shop.app
    queues = app.queues
    minutes = int(hours * 60)
    for minute in range(minutes):
        for number in range(6 + minute % 9):
            kind = "missing" if (minute + number) % 37 == 0 else "slow" if (minute * number) % 41 == 7 else "hat"
            await shop.send(
                queues["found"], PageFound(url=f"https://shop.example/{kind}/{minute}-{number}", words=number)
            )
        if minute % 3 == 0:
            for number in range(4):
                await shop.send(queues["orders"], OrderPlaced(item="hat", count=1 + (minute * 7 + number * 31) % 97))
        if minute % 20 == 0:
            await start_runs(shop, minute)
        await shop.advance(minutes=1)
    for number in range(240):
        await shop.send(queues["mails"], MailDue(to=f"ada{number}@shop.example", subject="Your hat"))
    for number in range(35):
        await shop.send(queues["imports"], {"file": f"hats-{number}.csv"})
    with operated_by("ada", "cli"):
        desk = await app.desk()
        await desk.pause("orders")
        await desk.tune("found", parallel=8, rate=None)
        await app.crons.trigger("crawl")
    for number in range(12):
        await shop.send(queues["orders"], OrderPlaced(item="scarf", count=number + 1))
    await shop.advance(seconds=70)


async def start_runs(shop: TestApp, minute: int) -> None:
    research = shop.app.workflows["research"]
    async with shop.unit():
        for topic in (f"hats {minute}", "broken" if minute % 40 == 0 else f"scarves {minute}", f"approve {minute}"):
            research[f"{topic.replace(' ', '-')}-{minute}"].start(topic)
