"""Which searched keywords are due before their month is over: those of good markets, and those that somebody tracks."""

from __future__ import annotations

from penstock_systems.appstore.app import app, db
from penstock_systems.appstore.moments import after

GOOD_SCORE = 70.0
GOOD_MARKET_DAYS = 7
TRACKED_HOURS = 20.0  # daily, and a run that is a little early finds them due as well
TRACKED_PRIORITY = 10
KEYWORDS_MAX = 10_000  # a day

OF_GOOD_MARKETS = """
update crawl_keywords
set next_search_at = :now
where keyword in (
  select k.keyword
  from market_clusters as m
  join cluster_keywords as c on c.cluster_id = m.id
  join crawl_keywords as k on k.keyword = c.keyword
  where m.ended_at is null
  and m.opportunity_score > :score
  and k.status = 'searched'
  and k.last_searched_at <= :before
  and k.next_search_at > :now
  limit :most
)
"""
TRACKED_NEW = """
insert into crawl_keywords (keyword, source, depth, status, priority, created_at)
select keyword, 'tracked', 0, 'pending', :priority, :now
from tracked_keywords
where keyword > ''
order by keyword
limit :most
on conflict (keyword) do nothing
"""
TRACKED_DUE = """
update crawl_keywords
set next_search_at = :now
where keyword in (
  select k.keyword
  from tracked_keywords as t
  join crawl_keywords as k on k.keyword = t.keyword
  where k.status = 'searched'
  and k.last_searched_at <= :before
  and k.next_search_at > :now
  limit :most
)
"""


async def refresh_keywords(now: str) -> dict[str, object]:
    """How many are due now that were not."""
    week, day = after(now, days=-GOOD_MARKET_DAYS), after(now, hours=-TRACKED_HOURS)
    async with app.unit():
        good = db.write(OF_GOOD_MARKETS, now=now, before=week, score=GOOD_SCORE, most=KEYWORDS_MAX)
        new = db.write(TRACKED_NEW, now=now, priority=TRACKED_PRIORITY, most=KEYWORDS_MAX)
        due = db.write(TRACKED_DUE, now=now, before=day, most=KEYWORDS_MAX)
    return {"of_good_markets": good.changes, "tracked": new.changes + due.changes}
