"""Three services: the desk orders research, gatherfeed looks it up in the library and reports back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import penstock as ps

RESEARCH = "insert into gf_research (keyword, pages) values (:keyword, :pages)"
NOTE = "insert into desk_notes (keyword, pages) values (:keyword, :pages)"
MIGRATIONS = Path(__file__).parent / "services_migrations"


class Wanted(ps.Command, type="research.wanted"):
    keyword: str


class Found(ps.Event, type="research.found"):
    keyword: str
    pages: int


class Newsroom:
    """`Newsroom(apart=True)` has a database for each service."""

    def __init__(self, *, apart: bool = False, **library: Any) -> None:
        self.app = app = ps.App("newsroom", apart=apart, database="newsroom.db")
        self.desk = app.service("desk", tables="desk_", uses=["gatherfeed"], migrations=MIGRATIONS / "desk")
        self.gather = app.service("gatherfeed", tables="gf_", uses=["library"], migrations=MIGRATIONS / "gatherfeed")
        self.library = app.service("library", infrastructure=True, migrations=MIGRATIONS / "library")
        self.commands = self.gather.queue("gatherfeed-commands", Wanted, retries=3, **library)
        self.events = self.desk.queue("desk-events", Found, parallel=1)
        self.fails = 0
        self.sources: list[str] = []
        self._declare()

    def _declare(self) -> None:
        desk, gather, library = self.desk, self.gather, self.library

        @self.commands.handler
        async def research(wanted: Wanted, message: ps.Message[Wanted]) -> None:
            self.sources.append(message.source)
            pages = await gather.bindings["library"].get("/v1/pages", about=wanted.keyword)
            gather.db.write(RESEARCH, keyword=wanted.keyword, pages=pages)
            self.events.send(Found(keyword=wanted.keyword, pages=pages))

        @self.events.handler
        async def note(found: Found) -> None:
            desk.db.write(NOTE, keyword=found.keyword, pages=found.pages)

        @library.get("/v1/pages", auth=ps.ServiceKey())
        async def pages(about: str) -> int:
            if self.fails:
                self.fails -= 1
                raise ps.HttpError(500, "The shelf fell over.")
            return len(about)

        @library.post("/v1/shelves", auth=ps.ServiceKey())
        async def add_shelf() -> str:
            return "added"

        @gather.get("/v1/research/{keyword}", auth=ps.ServiceKey())
        async def looked_up(keyword: str) -> dict[str, Any]:
            found = await gather.db.first(
                "select keyword, pages from gf_research where keyword = :keyword", keyword=keyword
            )
            if found is None:
                raise ps.HttpError(404, "Nothing was found.")
            return dict(found.asdict())

    async def order(self, *keywords: str) -> None:
        async with self.desk.unit():
            for keyword in keywords:
                self.commands.send(Wanted(keyword=keyword))

    async def notes(self) -> list[str]:
        return sorted(await self.desk.db.column("select keyword from desk_notes"))
