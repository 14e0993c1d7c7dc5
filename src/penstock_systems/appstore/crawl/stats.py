"""What a cycle did, filled in by those who do it, and where it is told: the log, a data point, the run's summary."""

from __future__ import annotations

import msgspec


class Enrichment(msgspec.Struct):
    """What a cycle adds to apps that the controller enriched, and whether more wait for that one."""

    purchases_checked: int = 0
    waiting: bool = False


class Stats(msgspec.Struct):
    phase: str = "adaptive"
    categories_scanned: int = 0
    apps_discovered: int = 0
    apps_ranked: int = 0
    keywords_searched: int = 0
    rankings_added: int = 0
    keywords_completed: int = 0
    enrichment: Enrichment = msgspec.field(default_factory=Enrichment)
    keywords_with_new_rankings: list[str] = msgspec.field(default_factory=list)
    held_back: str | None = None  # why searching ended before its list did: that is its pace, and no error
    errors: list[str] = msgspec.field(default_factory=list)

    @property
    def doubles(self) -> tuple[float, float, float, float]:
        """The numbers of its data point, in their order."""
        return (
            float(self.apps_discovered),
            float(self.rankings_added),
            float(self.keywords_searched),
            float(self.categories_scanned),
        )
