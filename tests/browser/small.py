"""A small app for journeys: jobs that fail while the app is broken, a workflow, and pages of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import penstock as ps
from penstock.config import Config, DashboardConfig
from penstock.pages import Column

HOSTILE = "<img src=x onerror=window.hacked=1>'\"</script><script>window.hacked=1</script>{{7*7}}"


class Job(ps.Command, type="job.wanted"):
    name: str


class Shelf(ps.Object):
    text: str = ""

    async def put(self, text: str) -> None:
        self.text = text


class Small:
    """The app, and whether its handler fails."""

    def __init__(self, folder: Path) -> None:
        self.is_broken = True
        self.done: list[str] = []
        self.app = ps.App(
            "small", database=str(folder / "small.db"), migrations="none", config=Config(dashboard=DashboardConfig())
        )
        self.jobs = self.app.queue("jobs", Job, retries=0)
        self.shelves = self.app.object(Shelf)

        @self.jobs.handler
        async def work(job: Job) -> None:
            if self.is_broken:
                raise ps.Permanent(f"cannot do {job.name}")
            self.done.append(job.name)

        @self.app.workflow(retries=0)
        async def build(run: ps.Run, name: str) -> str:
            first = await run.step("first", _same, name)
            await run.step("second", self._fails)
            return first

        @self.app.page("/jobs", "Jobs done", [Column("name", "job")], empty="No job was done yet.")
        async def listed() -> list[dict[str, str]]:
            return [{"name": name} for name in self.done]

        async def shout(name: str = "") -> list[str]:
            return [f"It will be {name.upper()}."]

        @listed.action("New job", preview=shout)
        async def add(name: str) -> str:
            self.jobs.send(Job(name=name))
            return f"Sent {name}."

    async def _fails(self) -> str:
        if self.is_broken:
            raise ps.Permanent("the second step cannot be done")
        return "second"

    async def send(self, *names: str) -> None:
        async with self.app.unit():
            for name in names:
                self.jobs.send(Job(name=name))

    async def value(self, sql: str) -> Any:
        return await self.app.db.value(sql)


async def _same(name: str) -> str:
    return name
