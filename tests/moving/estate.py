"""An app whose database has something in every state, to be moved, backed up and worked off at the other end."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import penstock as ps
from penstock.config import Config
from penstock.contracts.items import NoteItem
from penstock.contracts.ledger import ClaimRequest
from penstock.contracts.store import Store
from penstock.queues.external import PulledMessage
from penstock.runtime.unit import open_unit
from penstock.stores import store_at
from tests.moving.content import rows

HERE = Path(__file__).parent
APP = """
from pathlib import PosixPath
from tests.moving.estate import Estate

app = Estate({database!r}, migrations={migrations!r}).app
"""
LEASE_MICROS = 900_000_000
HELD = ("held one", "held two")
READY = ("ready one", "ready two")
CURSED = ("cursed one", "cursed two")


class Sale(ps.Command, type="sale"):
    item: str


class Order(ps.Command, type="order"):
    item: str


class Till(ps.Object):
    count: int = 0

    async def add(self) -> int:
        self.count += 1
        self.set_alarm(after=3_600)
        return self.count

    async def alarm(self) -> None:
        self.count = 0


class Estate:
    """The app on one database, and hands to fill it and look at it."""

    def __init__(self, database: str, *, migrations: Path = HERE / "migrations") -> None:
        self.database = database
        self.pulled: PulledMessage
        self.app = app = ps.App("estate", database=database, migrations=migrations, config=Config(synchronous="off"))
        self.sales = sales = app.queue("sales", Sale, retries=0, messages_max=1_000)
        self.outside = app.queue("outside", Order)
        self.gateway = app.gateway(budgets=ps.Budgets(month=20.0))
        self.tills = app.object(Till, tag="v1")
        app.db.keep_count("words")

        @sales.handler(Sale)
        async def sell(sale: Sale) -> None:
            if sale.item.startswith("cursed"):
                raise ps.Gone("nobody sells that")
            app.db.write(
                "insert into words (word, uses) values (:item, 1) on conflict (word) do update set uses = words.uses + 1",
                sale,
            )

        @app.cron("0 4 * * *", reason="the shop is swept at night")
        async def sweep() -> None:
            pass

    @property
    def store(self) -> Store:
        return store_at(self.database)

    async def fill(self) -> None:
        """Everything there is, once; somebody outside holds what he pulled."""
        no, yes = ("false", "true") if self.store.dialect == "postgres" else (0, 1)
        app, sales = self.app, self.sales
        async with app, app.unit():
            for item in ("done one", *CURSED):
                sales.send(Sale(item=item))
            sales.send(Sale(item="done with a key"), unique="key")
        await app.run(until_idle=True)
        async with app:
            engine = await app._opened()
            await app.dead.replay(1)
            await app.once("paid", _paid)
            async with app.unit():
                sales.send(Sale(item="delayed"), delay=3_600)
                self.outside.send(Order(item="pulled"))
                app.db.write("insert into shops (name, parent) values ('branch', 1)")
                app.db.insert_many(
                    "goods",
                    [
                        goods(
                            "a",
                            no,
                            price=1.5,
                            amount=12.5,
                            photo=bytes(range(256)),
                            facts='{"b": [1, 2], "a": null}',
                        ),
                        goods("b", yes, seen_at="2026-11-15 09:30:00", stock=-3),
                        goods("漢 'quoted', \n\t\\ 100%", no, amount=0),
                    ],
                )
            async with app.unit():
                app.db.write("insert into shops (name) values ('gone') ")
            async with app.unit():
                app.db.write("delete from shops where name = 'gone'")
            async with open_unit(engine, None) as unit:
                unit.effects.append(NoteItem("enrichment", "7", "parked", 3, 5, "no answer"))
            async with self.gateway.paid(provider="brave", operation="web_search", at_most=0.01, run="r1") as call:
                call.settle(units=3, usd=0.005)
            await self.tills["main"].add()
            (self.pulled,) = await (await app.desk()).pull("outside", limit=1, lease_seconds=600)

    async def hold(self) -> None:
        """A worker claims two messages and dies without a word, having begun none of them."""
        async with self.app, self.app.unit():
            for item in HELD:
                self.sales.send(Sale(item=item), priority=0)
        writer = self.store.open_writer(now=time.time_ns() // 1_000)
        presence = self.store.presence(writer.workers.me) if self.store.dialect == "sqlite" else None
        await asyncio.sleep(0)
        claimed = writer.ledger.commit(
            [], [ClaimRequest("sales", len(HELD), LEASE_MICROS)], now=time.time_ns() // 1_000, sweep=False
        )
        assert len(claimed.claimed) == len(HELD)
        writer.close()
        if presence is not None:
            presence.vanish()
        async with self.app, self.app.unit():
            for item in READY:
                self.sales.send(Sale(item=item))

    async def sold(self) -> dict[str, int]:
        async with self.app:
            return {row.word: row.uses for row in await self.app.db.rows("select word, uses from words")}


async def _paid() -> int:
    return 42


def goods(code: str, hidden: Any, **more: Any) -> dict[str, Any]:
    return {"code": code, "shop": 1, "stock": 0, "hidden": hidden, **more}


def filled(database: str) -> Estate:
    estate = Estate(database)
    asyncio.run(estate.fill())
    asyncio.run(estate.hold())
    return estate


def app_file(estate: Estate, folder: Path) -> str:
    """The app by a name that the command line understands."""
    file = folder / "estate_app.py"
    file.write_text(APP.format(database=estate.database, migrations=estate.app.migrations))
    return str(file)


def waiting(database: str) -> list[str]:
    bodies = rows(database, "select body from penstock_messages where queue in ('sales', 'outside')")
    return sorted(json.loads(body)["item"] for (body,) in bodies)
