"""A registered source: its connector, its handler, and what an operator does with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connect.connector import Connector
from penstock.connect.page import Change
from penstock.connect.web import HostPace

if TYPE_CHECKING:
    from penstock.connect.collector import Collector
    from penstock.outbound.client import Client

Handler = Callable[[Sequence[Change]], Awaitable[object]]
AnyHandler = TypeVar("AnyHandler", bound=Callable[..., Awaitable[object]])


@dataclass(frozen=True, slots=True)
class SourceError:
    """A source that failed in a run, and why."""

    source: str
    verdict: str
    error: str


@dataclass(slots=True)
class RunResult:
    """What one run of the collector did. `fetched` counts new records; `candidates` all that were read."""

    sources: int = 0
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0
    candidates: int = 0
    fetched: int = 0
    errors: list[SourceError] = field(default_factory=list)

    @property
    def facts(self) -> dict[str, object]:
        """The result under the names of its log line."""
        return {
            "totalSources": self.sources,
            "successCount": self.succeeded,
            "errorCount": self.failed,
            "skippedCount": self.skipped,
            "totalCandidates": self.candidates,
            "totalFetched": self.fetched,
            "errors": [{"sourceId": each.source, "error": each.error} for each in self.errors],
        }


class Source:
    """What `app.connector` returns. Decorate the function that saves its changes with `@source.handler`."""

    def __init__(self, collector: Collector, connector: Connector, client: Client, pace: HostPace) -> None:
        self._collector = collector
        self.connector = connector
        self.client = client
        self.pace = pace
        self.function: Handler | None = None

    @property
    def name(self) -> str:
        return self.connector.name

    def handler(self, function: AnyHandler) -> AnyHandler:
        """Call this with the changes of each page, in the commit that saves them and the cursor.

        Example:
            @offers.handler
            async def save(changes: Sequence[Change]) -> None:
                db.upsert("offers", [dict(each.record.data, id=each.record.id) for each in changes], key="id")"""
        self.function = function
        return function

    async def enable(self) -> None:
        """Run this source again, from the next run on."""
        await self._collector.switch(self.name, enabled=True)

    async def disable(self) -> None:
        """Stop running this source until it is enabled. Its cursor and records stay."""
        await self._collector.switch(self.name, enabled=False)

    async def reset(self) -> None:
        """Forget the cursor and what the source usually sends; its records stay."""
        await self._collector.reset(self.name)

    async def run_soon(self) -> None:
        """Make this source due, whatever its cadence and back-off, and start the collector."""
        await self._collector.run_soon(self.name)

    async def runs(self, most: int = 20) -> Sequence[Any]:
        """Return its last runs, the latest first. Runs in which nothing had changed are not kept."""
        return await self._collector.runs(self.name, most)
