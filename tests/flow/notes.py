"""An app with routes that write, send and call objects, and what their answers hold."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import httpx2
import msgspec

import penstock as ps


class Order(ps.Command, type="order.placed"):
    item: str


class Note(msgspec.Struct):
    text: str
    tags: list[str] = []
    at: datetime | None = None


class Unreadable:
    def __str__(self) -> str:
        raise TypeError("It cannot be written either.")


class Added(msgspec.Struct):
    user: str
    count: int


class Digest(ps.Object):
    notes: list[str] = []  # noqa: RUF012

    async def add(self, text: str) -> int:
        self.notes = [*self.notes, text]
        return len(self.notes)


def noted_app() -> ps.App:
    app = ps.App("shop")
    orders = app.queue("orders", Order)
    db, digests = app.db, app.object(Digest)

    @app.post("/v1/items/{name}", status=201)
    async def add(name: str, note: Note, request: ps.Request) -> Added:
        """Add an item."""
        db.write("insert into effects (what) values (:name)", name=f"{name}:{note.text}")
        orders.send(Order(item=name))
        return Added(request.principal, len(note.tags))

    @app.post("/v1/digests/{user}")
    async def digest(user: str, note: Note) -> int:
        return await digests[user].add(note.text)

    @app.get("/v1/items")
    async def items() -> list[str]:
        found: list[str] = await db.column("select what from effects order by what limit 100")
        return found

    @app.delete("/v1/items/{name}", status=204)
    async def remove(name: str) -> None:
        db.write("delete from effects where what = :name", name=name, expect=1)

    return app


async def names(client: httpx2.AsyncClient) -> list[str]:
    found: list[str] = (await client.get("/v1/items")).json()["result"]
    return found


def error(answer: httpx2.Response) -> tuple[int, str, Any]:
    """The status, the name and the field of a refusal."""
    (told,) = answer.json()["errors"]
    assert told["code"] == 10_000 + answer.status_code
    return answer.status_code, told["name"], told["details"].get("field")
