"""From what a month used on a small store to what it would use on the whole one: each part by what drives it. Pure.

A part grows with one count: apps that are enriched again, rows that are clustered, and so on. What was used for one of them
is measured; how many there are on the whole store is known. What goes by the clock alone does not grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.model.prices import GROSS, Usage, cost
from penstock_systems.appstore.cluster.task import TOP
from penstock_systems.appstore.daily.snapshots import BEST_KNOWN, OTHERS_MAX
from penstock_systems.standins.appstore.scale import APPS, KEYWORDS_FOUND, RANKED

DAYS = 30
CHANGED_A_DAY = 0.02  # of all apps
CLUSTERINGS = DAYS * 4  # every six hours: on the whole store some ranking has always changed

ENRICHED, SEARCHES, CLUSTERED, TOLD, SNAPSHOTS, CLOCK = (
    "apps enriched again",
    "searches",
    "rows clustered",
    "market events sent",
    "snapshots",
    "days",
)
# What a task is driven by, by how its name begins; queues and calls of objects have a word before it.
DRIVERS = {
    "controller.enrichment": ENRICHED,
    "object.Controller": ENRICHED,
    "calls:object.Controller": ENRICHED,
    "queue:object.Controller": ENRICHED,
    "pipeline-enrichment": ENRICHED,
    "queue:pipeline-enrichment": ENRICHED,
    "pipeline-events:app_enriched": ENRICHED,
    "queue:pipeline-events": ENRICHED,
    "cron.crawl": SEARCHES,
    "pipeline-events:rankings_updated": SEARCHES,
    "cron.cluster": CLUSTERED,
    "pipeline-events:clusters_ready": CLUSTERED,
    "pipeline-events:fragmentation_done": TOLD,
    "pipeline-events:design_done": TOLD,
    "object.OpportunityHarness": TOLD,
    "calls:object.OpportunityHarness": TOLD,
    "queue:object.OpportunityHarness": TOLD,
    "workflow.": TOLD,
    "queue:workflow.": TOLD,
    "cron.daily": SNAPSHOTS,
}
# On the whole store, in a month. Every keyword is searched for once in it, though the store might not take as many searches.
WHOLE: dict[str, float] = {
    ENRICHED: APPS * CHANGED_A_DAY * DAYS,
    SEARCHES: KEYWORDS_FOUND,
    CLUSTERED: CLUSTERINGS * (APPS + RANKED),
    TOLD: CLUSTERINGS * TOP,
    SNAPSHOTS: DAYS * (BEST_KNOWN + OTHERS_MAX),
    CLOCK: DAYS,
}


@dataclass(frozen=True, slots=True)
class Part:
    """What one driver has used, and how much of it there was. `whole` is how much there would be on the whole store."""

    driver: str
    used: Usage
    measured: float
    whole: float

    @property
    def factor(self) -> float:
        """How many times as much. Of what there was nothing, nothing can be said."""
        return self.whole / self.measured if self.measured else 0.0

    @property
    def extrapolated(self) -> Usage:
        return times(self.used, self.factor)

    def each(self, name: str) -> float:
        """Of one kind of usage, for one of what drives it."""
        used: float = getattr(self.used, name)
        return used / self.measured if self.measured else 0.0


def times(usage: Usage, factor: float) -> Usage:
    return Usage(
        rows_read=round(usage.rows_read * factor),
        rows_written=round(usage.rows_written * factor),
        queue_operations=round(usage.queue_operations * factor),
        object_requests=round(usage.object_requests * factor),
        object_seconds=usage.object_seconds * factor,
    )


def driver_of(name: str) -> str:
    """The longest beginning decides."""
    known = [begin for begin in DRIVERS if name.startswith(begin)]
    return DRIVERS[max(known, key=len)] if known else CLOCK


def parts(used: Mapping[str, Usage], counts: Mapping[str, float]) -> list[Part]:
    """`used` is by task, queue and class of objects; `counts` is how much there was of each driver."""
    sums = {driver: Usage() for driver in WHOLE}
    for name, usage in used.items():
        sums[driver_of(name)] += usage
    return [Part(driver, usage, counts[driver], WHOLE[driver]) for driver, usage in sums.items()]


def dollars(usage: Usage) -> float:
    """With nothing free."""
    return cost(usage, GROSS, days=DAYS).usd


def total(found: list[Part], *, extrapolated: bool) -> Usage:
    summed = Usage()
    for part in found:
        summed += part.extrapolated if extrapolated else part.used
    return summed
