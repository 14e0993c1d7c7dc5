"""A controller over a table of stock, with hands on what it picks, works on and fails at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import penstock as ps
from penstock.testing import TestApp
from tests.flow.shop import EFFECT

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
PENDING = "select item from stock where pieces = 0 order by item limit :limit"
SAVE = "update stock set pieces = pieces + 1 where item = :item"
Work = Callable[[str], Awaitable[object]]


class Shelf:
    """A controller over the table `stock`: items with no pieces are pending, and `after` notes each."""

    def __init__(
        self, work: Work | None = None, *, mode: str = "zones", sets_aside: bool = True, **settings: Any
    ) -> None:
        self.app = app = ps.App("shop")
        self.worked: list[str] = []
        self.picks = 0
        self.pick_fails: Exception | None = None
        self.after_fails: str | None = None
        shelf = self

        @app.controller("enrichment", mode=mode, **settings)
        class Enrichment(ps.Controller[str]):
            async def pick(self, limit: int) -> list[str]:
                shelf.picks += 1
                if shelf.pick_fails is not None:
                    raise shelf.pick_fails
                return await app.db.column(PENDING, limit=limit)

            async def work(self, item: str) -> None:
                shelf.worked.append(item)
                if work is not None:
                    await work(item)
                app.db.write(SAVE, item=item)

            async def after(self, done: list[str]) -> None:
                for item in done:
                    app.db.write(EFFECT, what=item)
                if shelf.after_fails:
                    app.db.write(shelf.after_fails)

        Enrichment.sets_aside = sets_aside
        self.controller = app.controllers["enrichment"]

    async def fill(self, shop: TestApp, *names: str) -> None:
        async with shop.unit():
            for name in names:
                self.app.db.write("insert into stock (item, pieces) values (:item, 0)", item=name)

    async def status(self) -> dict[str, Any]:
        return await self.app.controllers.status("enrichment")

    async def notes(self) -> dict[str, str]:
        rows = await self.app.db.rows("select item, state from penstock_items order by item")
        return {row["item"].strip('"'): row["state"] for row in rows}


def names(count: int) -> list[str]:
    return [f"{number:03}" for number in range(count)]


MODES = pytest.mark.parametrize("mode", ["pilot", "zones"])
