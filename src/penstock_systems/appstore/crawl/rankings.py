"""What a group of searches found, saved together: apps, ranks, who dropped out, new keywords, and each keyword's outcome."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from copy import deepcopy

import msgspec

import penstock as ps
from penstock.data import chunks
from penstock_systems.appstore.app import app, db, settings
from penstock_systems.appstore.crawl import keyword_list, registry, untold
from penstock_systems.appstore.crawl.convergence import Window
from penstock_systems.appstore.crawl.searching import PARALLEL, Answers, Hit, Miss, keep
from penstock_systems.appstore.crawl.stats import Stats
from penstock_systems.appstore.crawl.written import written
from penstock_systems.appstore.keywords import Letters, discovered
from penstock_systems.appstore.store.facts import Found

RANKS_BEFORE_MAX = 10_000  # of a group; each of its ten searches gave 25
RANKS_A_BATCH = 100
CHANGED_AT = "rankings_changed_at"  # the clustering reads it before it begins

BEFORE = """
select keyword, track_id
from crawl_rankings
where keyword in (:k0, :k1, :k2, :k3, :k4, :k5, :k6, :k7, :k8, :k9)
limit :most
"""
DROPPED = "delete from crawl_rankings where keyword = :keyword and track_id = :track_id"
UNRANKED_AGAIN = """
update app_registry
set ranked_at = null
where track_id = :track_id
and not exists (
  select 1
  from crawl_rankings
  where crawl_rankings.track_id = app_registry.track_id
)
"""


class Keyword(msgspec.Struct, frozen=True):
    """What of a keyword matters to a search."""

    depth: int = 0
    attempts: int = 0


class Harvest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written about some answers: worked out first, then written in one unit."""

    apps: list[Found]
    ranks: list[dict[str, object]]
    dropped: list[tuple[str, int]]  # a keyword, and an app that ranked for it until now
    derived: list[tuple[str, list[str]]]  # a keyword, and those that its new apps' titles give
    counts: list[tuple[Hit, int]]  # an answer, and how many of its apps were known
    discovered: int
    added: int
    changed: list[str]


def harvest(
    hits: Sequence[Hit],
    *,
    before: Mapping[str, set[int]],
    known: set[int],
    leads_on: Mapping[str, bool],
    letters: Letters,
    now: str,
) -> Harvest:
    """`before` are the apps that ranked for each keyword until now, `known` those that the registry has."""
    seen = set(known)
    derived, counts, ranks, dropped = [], [], [], []
    added = 0
    for hit in hits:
        fresh = [each for each in hit.apps if each.track_id not in seen]
        counts.append((hit, len(hit.apps) - len(fresh)))
        seen.update(each.track_id for each in fresh)
        if leads_on.get(hit.keyword):
            derived.append((hit.keyword, [word for each in fresh for word in discovered(each.title or "", letters)]))
        now_ranked = {each.track_id for each in hit.apps}
        added += len(now_ranked - before.get(hit.keyword, set()))
        ranks += [
            {"keyword": hit.keyword, "track_id": each.track_id, "rank": each.rank or place, "crawled_at": now}
            for place, each in enumerate(hit.apps, 1)
        ]
        gone = sorted(before.get(hit.keyword, set()) - now_ranked)
        dropped += [(hit.keyword, track_id) for track_id in gone]
    return Harvest(
        apps=[each for hit in hits for each in hit.apps],
        ranks=ranks,
        dropped=dropped,
        derived=derived,
        counts=counts,
        discovered=len(seen) - len(known),
        added=added,
        changed=[hit.keyword for hit in hits if hit.apps or before.get(hit.keyword)],
    )


class Results:
    """Saves what the searches of one cycle find, a group at a time, and keeps count of it."""

    def __init__(self, stats: Stats, window: Window) -> None:
        self._stats = stats
        self._window = window
        self._saving = asyncio.Lock()  # each save builds on the last one's window and list

    async def save(self, answers: Answers, keywords: Mapping[str, Keyword]) -> None:
        """One unit for the group. Where that cannot be saved each answer gets its own, and only the culprit fails."""
        async with self._saving:
            try:
                await self._save(answers.hits, answers.misses, answers.fresh, keywords)
                return
            except ps.LeaseLost:
                raise
            except Exception as error:
                if not answers.hits:
                    raise
                self._stats.errors.append(f"keywords: {type(error).__name__}: {error}")
            for hit in answers.hits:
                try:
                    await self._save([hit], [], [], keywords)
                except ps.LeaseLost:
                    raise
                except Exception as error:
                    await self._save([], [Miss(hit.keyword, error)], [], keywords)
            await self._save([], answers.misses, answers.fresh, keywords)

    async def _save(
        self, hits: Sequence[Hit], misses: Sequence[Miss], fresh: Sequence[str], keywords: Mapping[str, Keyword]
    ) -> None:
        now = await db.now()
        known_apps = await registry.known(each.track_id for hit in hits for each in hit.apps)
        found = harvest(
            hits,
            before=await _ranked_before([hit.keyword for hit in hits]),
            known=known_apps,
            leads_on={hit.keyword: self._window.leads_on(_of(keywords, hit).depth) for hit in hits},
            letters=settings.alphabet,
            now=now,
        )
        window = deepcopy(self._window)
        told = [*self._stats.keywords_with_new_rankings, *found.changed]
        memory = await written()
        news = memory.news(found.apps, known=known_apps, now=now)
        async with app.unit():
            _write(found, news, keywords, now)
            for hit, known in found.counts:
                window.add(found=len(hit.apps), known=known)
            if hits:
                window.save(now)
            if found.changed:
                untold.remember(told, now)
                db.upsert("crawl_state", {"name": CHANGED_AT, "value": now, "updated_at": now}, key="name")
            for miss in misses:
                attempts = _of(keywords, miss).attempts + 1
                keyword_list.failed(miss.keyword, attempts=attempts, error=miss.error, now=now)
            for keyword in fresh:
                keyword_list.still_fresh(keyword, now=now)
        memory.saved(news, now=now)
        memory.forget(track_id for _, track_id in found.dropped)
        self._window = window
        self._count(found, misses)

    def _count(self, found: Harvest, misses: Sequence[Miss]) -> None:
        stats = self._stats
        stats.keywords_searched += len(found.counts)
        stats.apps_discovered += found.discovered
        stats.rankings_added += found.added
        stats.keywords_with_new_rankings += found.changed
        stats.errors += [f"{miss.keyword}: {type(miss.error).__name__}: {miss.error}" for miss in misses]


def _write(found: Harvest, news: Sequence[Found], keywords: Mapping[str, Keyword], now: str) -> None:
    """Joins the unit. Ranks first, so that an app that left one keyword and came into another is not called unranked."""
    registry.write_found(news, source="search", now=now, ranked=True)
    for batch in chunks(found.ranks, RANKS_A_BATCH):
        db.upsert("crawl_rankings", batch, key=("keyword", "track_id"))
    db.write_many(DROPPED, [{"keyword": keyword, "track_id": track_id} for keyword, track_id in found.dropped])
    left = sorted({track_id for _, track_id in found.dropped} - {each.track_id for each in found.apps})
    db.write_many(UNRANKED_AGAIN, [{"track_id": track_id} for track_id in left])
    for keyword, made in found.derived:
        depth = keywords.get(keyword, Keyword()).depth + 1
        keyword_list.add(made, source="search", source_keyword=keyword, depth=depth, now=now)
    # Not in turns: what follows upon its like is measured with it, and to measure takes longer than to write.
    for hit, known in found.counts:
        keyword_list.searched(hit.keyword, found=len(hit.apps), known=known, now=now)
    for hit, _ in found.counts:
        keep(hit, now)


async def _ranked_before(keywords: Sequence[str]) -> dict[str, set[int]]:
    before: dict[str, set[int]] = defaultdict(set)
    if keywords:
        padded = [*keywords, *[keywords[-1]] * (PARALLEL - len(keywords))]
        named = {f"k{place}": keyword for place, keyword in enumerate(padded)}
        for row in await db.rows(BEFORE, named, most=RANKS_BEFORE_MAX):
            before[row.keyword].add(row.track_id)
    return before


def _of(keywords: Mapping[str, Keyword], answer: Hit | Miss) -> Keyword:
    return keywords.get(answer.keyword, Keyword())
