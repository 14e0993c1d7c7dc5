"""The markets as they stand: who is in them, read a page at a time."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock_systems.appstore.app import db
from penstock_systems.appstore.cluster.crawled import LOWEST, PAGE_ROWS, doubles, longs
from penstock_systems.appstore.cluster.identity import Known

MARKETS = """
select id, lineage_id
from market_clusters
where ended_at is null
and id > :after
order by id
limit :size
"""
# Ended ones too: an id is never given twice.
HIGHEST = "select id from market_clusters order by id desc limit 1"
KEYWORDS = db.hot(
    """
select cluster_id, keyword, weight
from cluster_keywords
where (cluster_id, keyword) > (:id, :member)
order by cluster_id, keyword
limit :size
"""
)
APPS = db.hot(
    """
select cluster_id, track_id, weight
from cluster_apps
where (cluster_id, track_id) > (:id, :member)
order by cluster_id, track_id
limit :size
"""
)
NEIGHBOURS = db.hot(
    """
select a, b, weight
from cluster_relations
where kind = 'neighbour'
and (a, b) > (:id, :member)
order by a, b
limit :size
"""
)


@dataclass(slots=True)
class AppMembers:
    """The apps of all markets in columns, by market: a million of them would be too many objects."""

    track_id: array[int] = field(default_factory=longs)
    weight: array[float] = field(default_factory=doubles)
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)

    def of(self, market: int) -> dict[int, float]:
        start, end = self.spans.get(market, (0, 0))
        return dict(zip(self.track_id[start:end], self.weight[start:end], strict=True))


@dataclass(slots=True)
class Standing:
    lineages: dict[int, int] = field(default_factory=dict)  # of the markets that have not ended
    keywords: dict[int, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    apps: AppMembers = field(default_factory=AppMembers)
    neighbours: dict[tuple[int, int], float] = field(default_factory=dict)
    first_free: int = 1

    @property
    def known(self) -> dict[int, Known]:
        return {id: Known(lineage, len(self.keywords.get(id, ()))) for id, lineage in self.lineages.items()}

    def membership(self) -> Iterator[tuple[int, str]]:
        return ((id, keyword) for id, keywords in self.keywords.items() if id in self.lineages for keyword in keywords)


async def standing() -> Standing:
    found = Standing()
    async for page in db.pages(MARKETS, key="id", size=PAGE_ROWS):
        found.lineages.update((id, lineage) for id, lineage in page)
    found.first_free = (await db.value(HIGHEST) or 0) + 1
    async for page in _pages(KEYWORDS, ""):
        for id, keyword, weight in page:
            found.keywords[id][keyword] = weight
    async for page in _pages(APPS, LOWEST):
        for id, track_id, weight in page:
            found.apps.track_id.append(track_id)
            found.apps.weight.append(weight)
            end = len(found.apps.track_id)
            found.apps.spans[id] = (found.apps.spans.get(id, (end - 1, end))[0], end)
    async for page in _pages(NEIGHBOURS, LOWEST):
        found.neighbours.update(((a, b), weight) for a, b, weight in page)
    return found


async def _pages(sql: str, lowest: str | int) -> AsyncIterator[list[Any]]:
    """Pages by a key of two columns."""
    id, member = LOWEST, lowest
    while page := await db.rows(sql, id=id, member=member, size=PAGE_ROWS):
        yield page
        id, member = page[-1][0], page[-1][1]
        if len(page) < PAGE_ROWS:
            return
