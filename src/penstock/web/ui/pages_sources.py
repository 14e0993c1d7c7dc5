"""The pages of sources, in an app that has connectors: declared as an app declares pages of its own."""

from __future__ import annotations

from typing import Any

from penstock.app import App
from penstock.model.times import text_of_micros
from penstock.pages import Column, Section
from penstock.views import sources as view

COLUMNS = [Column("name", "source", link="/sources/{name}"), *view.SOURCES.columns[1:]]


def declare_sources(app: App) -> None:
    """Add the pages, unless the app has one at this address or no source."""
    if not app.sources.sources or "/sources" in app.pages:
        return
    sources = app.sources
    group = next((page.group for page in app.pages.values()), None)  # beside the app's own pages

    @app.page("/sources", "Sources", COLUMNS, every=5, group=group)
    async def show_sources() -> list[dict[str, Any]]:
        now = text_of_micros(app._clock.now())
        return [view.source_row(row, now) for row in await sources.list()]

    @app.page("/sources/{name}", "Source", [view.NAME, *view.SOURCE], every=5)
    async def show_source(name: str) -> list[Section]:
        runs = [view.run_row(row) for row in await sources.runs(name, 20)]
        row = next(each for each in await show_sources() if each["name"] == name)
        return [
            Section(title=name, facts=row),
            Section(title="Runs", rows=runs, columns=view.RUNS.columns, empty=view.RUNS.empty),
        ]

    @show_sources.action("Run now", on="row")
    async def run_source(name: str) -> str:
        await sources.run_soon(name)
        return f"Made {name} due. A worker runs it."

    @show_source.action("Enable")
    async def enable(name: str) -> str:
        await sources.switch(name, enabled=True)
        return f"Enabled {name}."

    @show_source.action("Disable")
    async def disable(name: str) -> str:
        await sources.switch(name, enabled=False)
        return f"Disabled {name}."

    @show_source.action(
        "Read from the start", confirm="Its cursor is deleted: the next run reads all of it.", dangerous=True
    )
    async def reset(name: str) -> str:
        await sources.reset(name)
        return f"Reset {name}."
