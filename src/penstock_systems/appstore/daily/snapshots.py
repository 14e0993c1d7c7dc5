"""A day's facts for a bounded set: the best known apps, those in markets or starred, and the tracked keywords. One row
each and day, however often it is run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.moments import day_of

BEST_KNOWN = 50_000  # apps: two million rows in forty days, where the whole registry would take a day
OTHERS_MAX = 50_000  # apps in markets, and as many that somebody starred
TRACKED_MAX = 5_000  # keywords
PAGE = 1_000  # rows a commit
KEYWORDS_A_PAGE = 500
COUNT_MAX = 2**62  # no app has as many ratings

SAME_COUNT = """
select a.track_id, a.rating_count, a.average_rating,
  (select min(r.rank) from crawl_rankings as r where r.track_id = a.track_id) as best_rank
from app_registry as a
where a.rating_count = :count
and a.track_id > :after
order by a.track_id
limit :size
"""
LOWER_COUNT = """
select a.track_id, a.rating_count, a.average_rating,
  (select min(r.rank) from crawl_rankings as r where r.track_id = a.track_id) as best_rank
from app_registry as a
where a.rating_count < :count
order by a.rating_count desc, a.track_id
limit :size
"""
IN_MARKETS = """
select c.track_id, a.rating_count, a.average_rating,
  (select min(r.rank) from crawl_rankings as r where r.track_id = c.track_id) as best_rank
from cluster_apps as c
join app_registry as a on a.track_id = c.track_id
where c.track_id > :after
order by c.track_id
limit :size
"""
STARRED = """
select s.track_id, a.rating_count, a.average_rating,
  (select min(r.rank) from crawl_rankings as r where r.track_id = s.track_id) as best_rank
from app_stars as s
join app_registry as a on a.track_id = s.track_id
where s.track_id > :after
order by s.track_id
limit :size
"""
TRACKED = """
select t.keyword, k.app_count, k.demand, k.priority, k.last_searched_at, v.response
from tracked_keywords as t
left join crawl_keywords as k on k.keyword = t.keyword
left join dfs_keyword_cache as v on v.keyword = t.keyword
where t.keyword > :after
order by t.keyword
limit :size
"""
RANKS = """
insert into ranking_snapshots (keyword, track_id, day, rank, snapshot_at)
select keyword, track_id, :day, rank, :now
from crawl_rankings
where keyword = :keyword
on conflict (keyword, track_id, day) do nothing
"""


async def take_snapshots(now: str) -> dict[str, object]:
    """How many rows are new of each kind."""
    apps = keywords = ranks = 0
    for pages in (best_known(), _paged(IN_MARKETS, most=OTHERS_MAX), _paged(STARRED, most=OTHERS_MAX)):
        async for page in pages:
            apps += await _save_apps(page, now)
    async for page in _paged(TRACKED, most=TRACKED_MAX, key="keyword", after="", size=KEYWORDS_A_PAGE):
        new_keywords, new_ranks = await _save_keywords(page, now)
        keywords, ranks = keywords + new_keywords, ranks + new_ranks
    return {"apps": apps, "keywords": keywords, "ranks": ranks}


async def best_known() -> AsyncIterator[Sequence[Any]]:
    """The apps with the most ratings, a page at a time. Half of a store shares the lowest count: there it goes by id."""
    count, after, left = COUNT_MAX, 0, BEST_KNOWN
    while left > 0:
        size = min(PAGE, left)
        page = await db.rows(SAME_COUNT, count=count, after=after, size=size)
        if len(page) < size:
            page += await db.rows(LOWER_COUNT, count=count, size=size - len(page))
        if not page:
            return
        yield page
        count, after, left = page[-1].rating_count, page[-1].track_id, left - len(page)


async def _paged(
    sql: str, *, most: int, key: str = "track_id", after: object = 0, size: int = PAGE
) -> AsyncIterator[Sequence[Any]]:
    """The first so many rows, a page at a time."""
    left = most
    while left > 0:
        page = await db.rows(sql, after=after, size=min(size, left))
        if not page:
            return
        yield page
        after, left = page[-1][key], left - len(page)


async def _save_apps(page: Sequence[Any], now: str) -> int:
    rows = [
        {
            "id": f"{row.track_id} {day_of(now)}",
            "track_id": row.track_id,
            "day": day_of(now),
            "rating_count": row.rating_count,
            "average_rating": row.average_rating,
            "rank": row.best_rank,
            "snapshot_at": now,
        }
        for row in page
    ]
    async with app.unit():
        saved = db.insert_many("app_snapshots", rows)
    return saved.changes


async def _save_keywords(page: Sequence[Any], now: str) -> tuple[int, int]:
    day = day_of(now)
    rows = [
        {"keyword": row.keyword, "day": day, "metrics": db.json(metrics_of(row)), "snapshot_at": now} for row in page
    ]
    async with app.unit():
        keywords = db.insert_many("keyword_snapshots", rows)
        ranks = db.write_many(RANKS, [{"keyword": row.keyword, "day": day, "now": now} for row in page])
    return keywords.changes, ranks.changes


def metrics_of(row: Any) -> dict[str, object]:
    """What is known of a keyword today. The volume is a search engine's, where somebody pays for it."""
    return {
        "app_count": row.app_count,
        "demand": row.demand,
        "priority": row.priority,
        "last_searched_at": row.last_searched_at,
        "volume": _volume(row.response),
    }


class _Volume(msgspec.Struct):
    search_volume: int | None = None


def _volume(response: str | None) -> int | None:
    try:
        return msgspec.json.decode(response or "{}", type=_Volume).search_volume
    except msgspec.MsgspecError:
        return None
