"""The list of keywords and the life of each: pending, searched, due again; or waiting after a failure, and failed at last."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.data import cut
from penstock_systems.appstore.app import app, db, settings
from penstock_systems.appstore.keywords import normal
from penstock_systems.appstore.moments import after

ATTEMPTS_MAX = 5
RETRY_HOURS = 1.0  # after the first failure, doubling
SEARCH_AGAIN_DAYS = 30
SEED_PRIORITY = 10  # what a person asks for comes before what titles gave
SEEDS_A_CYCLE = 500
PROMOTED_A_CYCLE = 1_000
ERROR_MAX = 300  # characters

PENDING = """
select keyword, depth, attempts
from crawl_keywords
where status = 'pending'
order by priority desc, titles desc, created_at, keyword
limit :most
"""
ADD = """
insert into crawl_keywords (keyword, source, source_keyword, depth, status, titles, created_at)
values (:keyword, :source, :source_keyword, :depth, 'pending', :titles, :now)
on conflict (keyword) do update set titles = crawl_keywords.titles + excluded.titles
where crawl_keywords.status = 'pending'
"""
UNPLANTED = """
select keyword
from crawl_seeds
where planted_at is null
order by keyword
limit :most
"""
PLANT = """
insert into crawl_keywords (keyword, source, depth, status, priority, created_at)
values (:keyword, 'seed', 0, 'pending', :priority, :now)
on conflict (keyword) do update set
  priority = case when crawl_keywords.priority < excluded.priority then excluded.priority else crawl_keywords.priority end
"""
PLANTED = "update crawl_seeds set planted_at = :now where keyword = :keyword"
PROMOTE = """
update crawl_keywords
set status = 'pending', next_search_at = null
where keyword in (
  select keyword
  from crawl_keywords
  where next_search_at <= :now
  order by next_search_at
  limit :most
)
"""
SEARCHED = """
update crawl_keywords
set status = 'searched', app_count = :found, known_count = :known, attempts = 0, last_error = null,
  last_searched_at = :now, next_search_at = :again
where keyword = :keyword
"""
STILL_FRESH = """
update crawl_keywords
set status = 'searched', next_search_at = :again
where keyword = :keyword
and status = 'pending'
"""
FAILED = """
update crawl_keywords
set status = :status, attempts = :attempts, last_error = :error, next_search_at = :again
where keyword = :keyword
"""


async def make_ready() -> None:
    """Seeds that somebody named become keywords, and keywords whose time has come are pending again."""
    now = await db.now()
    seeds = await db.column(UNPLANTED, most=SEEDS_A_CYCLE)
    async with app.unit():
        named = dict.fromkeys(filter(None, (normal(seed, settings.letters or "any") for seed in seeds)))
        db.write_many(PLANT, [{"keyword": each, "priority": SEED_PRIORITY, "now": now} for each in named])
        db.write_many(PLANTED, [{"keyword": seed, "now": now} for seed in seeds])
        db.write(PROMOTE, now=now, most=PROMOTED_A_CYCLE)


async def pending(most: int) -> Sequence[Any]:
    """The next keywords: by priority, then those in most titles, then the oldest."""
    return await db.rows(PENDING, most=most)


def add(keywords: Iterable[str], *, source: str, now: str, depth: int = 0, source_keyword: str | None = None) -> None:
    """Joins the unit. A keyword that comes again, from another title, is searched the sooner."""
    rows = [
        {
            "keyword": keyword,
            "source": source,
            "source_keyword": source_keyword,
            "depth": depth,
            "titles": titles,
            "now": now,
        }
        for keyword, titles in Counter(keywords).items()
    ]
    if rows:
        db.write_many(ADD, rows)


def searched(keyword: str, *, found: int, known: int, now: str) -> None:
    """Joins the unit."""
    again = after(now, days=SEARCH_AGAIN_DAYS)
    db.write(SEARCHED, keyword=keyword, found=found, known=known, now=now, again=again)


def still_fresh(keyword: str, *, now: str) -> None:
    """Joins the unit: it was answered within the hour, so there is nothing to search for."""
    db.write(STILL_FRESH, keyword=keyword, again=after(now, days=SEARCH_AGAIN_DAYS))


def failed(keyword: str, *, attempts: int, error: Exception, now: str) -> None:
    """Joins the unit. `attempts` counts this one: so many, and it is not tried again by itself."""
    is_last = attempts >= ATTEMPTS_MAX
    db.write(
        FAILED,
        keyword=keyword,
        status="failed" if is_last else "waiting",
        attempts=attempts,
        error=cut(f"{type(error).__name__}: {error}".replace("\0", ""), ERROR_MAX),
        again=None if is_last else after(now, hours=RETRY_HOURS * 2 ** (attempts - 1)),
    )
