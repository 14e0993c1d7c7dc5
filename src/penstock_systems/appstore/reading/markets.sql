-- Keywords and markets, and what moved. `:since` is where the window begins in which a change is looked for.

-- name: keywords_by_demand
-- Those that are asked for most. Index: reading_keywords_demand.
select keyword, status, source, demand, app_count, priority, depth, last_searched_at, next_search_at
from crawl_keywords
where demand is not null
order by demand desc, keyword
limit :most;

-- name: keywords_of_status
-- Those of one status, in the order in which the crawl takes them. Index: crawl_keywords_work.
select keyword, status, source, demand, app_count, priority, depth, last_searched_at, next_search_at
from crawl_keywords
where status = :status
order by priority desc, titles desc, created_at, keyword
limit :most;

-- name: keywords_of_market
-- The keywords of a market. Index: the key of cluster_keywords.
select word.keyword, word.status, word.source, word.demand, word.app_count, word.priority, word.depth,
  word.last_searched_at, word.next_search_at, member.weight
from cluster_keywords as member
join crawl_keywords as word
on word.keyword = member.keyword
where member.cluster_id = :market
order by member.weight desc, word.keyword
limit :most;

-- name: keywords_of_app
-- What an app ranks for. Index: crawl_rankings_app.
select word.keyword, word.status, word.source, word.demand, word.app_count, word.priority, word.depth,
  word.last_searched_at, word.next_search_at, place.rank
from crawl_rankings as place
join crawl_keywords as word
on word.keyword = place.keyword
where place.track_id = :app
order by place.rank, word.keyword
limit :most;

-- name: keywords_tracked
-- Those that somebody watches, with what they are now; one that the crawl has not met yet has no status.
select tracked.keyword, word.status, word.source, word.demand, word.app_count, word.priority, word.depth,
  word.last_searched_at, word.next_search_at, tracked.added_by, tracked.created_at
from tracked_keywords as tracked
left join crawl_keywords as word
on word.keyword = tracked.keyword
order by tracked.keyword
limit :most;

-- name: keyword
-- One keyword.
select keyword, status, source, source_keyword, demand, app_count, known_count, priority, depth, attempts, last_error,
  last_searched_at, next_search_at, created_at
from crawl_keywords
where keyword = :keyword
limit 1;

-- name: keyword_markets
-- Which markets it is in. Index: cluster_keywords_keyword.
select market.id, market.name, market.opportunity_score, member.weight
from cluster_keywords as member
join market_clusters as market
on market.id = member.cluster_id
where member.keyword = :keyword
and market.ended_at is null
order by member.weight desc, market.id
limit :most;

-- name: keyword_days
-- Its last days. Index: the key of keyword_snapshots.
select day, metrics
from keyword_snapshots
where keyword = :keyword
order by day desc
limit :most;

-- name: keyword_places
-- Apps that ranked for it on its last days, if somebody tracks it. Index: the key of ranking_snapshots.
select place.day, place.rank, place.track_id, app.track_name
from ranking_snapshots as place
left join app_registry as app
on app.track_id = place.track_id
where place.keyword = :keyword
order by place.day desc, place.rank, place.track_id
limit :most;

-- name: clusters
-- Markets by their score, and how far it moved since the first snapshot in the window in which as much was known: what rises
-- only because the crawl grew does not rise. Indexes: reading_markets_best, the
-- key of cluster_snapshots.
select id, lineage_id, name, opportunity_score, demand, competitiveness, fragmentation, dissatisfaction, room, coverage,
  franchise, scores, apps, keywords, first_seen_at, computed_at,
  opportunity_score - (
    select earlier.opportunity_score
    from cluster_snapshots as earlier
    where earlier.cluster_id = market_clusters.id
    and earlier.snapshot_at >= :since
    and earlier.scores = market_clusters.scores
    and earlier.coverage >= market_clusters.coverage - 0.1
    and earlier.keywords * 10 >= market_clusters.keywords * 8
    order by earlier.snapshot_at
    limit 1
  ) as change
from market_clusters
where ended_at is null
order by coalesce(opportunity_score, -1) desc, id
limit :most;

-- name: cluster
-- One market, also one that has ended.
select id, lineage_id, name, opportunity_score, demand, competitiveness, fragmentation, dissatisfaction, room, coverage,
  franchise, scores, apps, keywords, first_seen_at, computed_at, ended_at
from market_clusters
where id = :id
limit 1;

-- name: cluster_history
-- What became of it, the newest first. Index: the key of cluster_snapshots.
select snapshot_at, opportunity_score, demand, competitiveness, fragmentation, apps, keywords
from cluster_snapshots
where cluster_id = :id
order by snapshot_at desc
limit :most;

-- name: cluster_neighbours
-- Who is near it, from either side. Indexes: the key of cluster_relations, reading_relations_b.
select near.id, market.name, market.opportunity_score, near.kind, near.weight
from (
  select b as id, kind, weight from cluster_relations where a = :id
  union
  select a as id, kind, weight from cluster_relations where b = :id
) as near
join market_clusters as market
on market.id = near.id
where market.ended_at is null
order by near.weight desc, near.id, near.kind
limit :most;

-- name: cluster_concepts
-- What could be built for it. Index: design_concepts_cluster.
select id, title, body, made_by, created_at
from design_concepts
where cluster_id = :id
order by created_at desc, id
limit :most;

-- name: cluster_tips
-- What is worth knowing about it. Index: market_tips_cluster.
select id, evaluation_id, text, created_at
from market_tips
where cluster_id = :id
order by created_at desc, id
limit :most;

-- name: rising_apps
-- Apps that win ratings, the fastest first. Index: reading_apps_rising.
select track_id, track_name, primary_genre, rating_count, average_rating, rating_velocity_7d
from app_registry
where rating_velocity_7d > 0
order by rating_velocity_7d desc, track_id
limit :most;

-- name: climbers
-- Who stands higher in a chart than at the first scan in the window. It goes through what the charts hold now, at most 200
-- places each. Index: chart_position_history_app.
select moved.track_id, app.track_name, moved.collection, moved.category, scan.category_name, moved.rank, moved.was,
  moved.was - moved.rank as climbed
from (
  select place.track_id, place.collection, place.category, place.rank, (
    select earlier.rank
    from chart_position_history as earlier
    where earlier.track_id = place.track_id
    and earlier.collection = place.collection
    and earlier.category = place.category
    and earlier.snapshot_at >= :since
    order by earlier.snapshot_at
    limit 1
  ) as was
  from chart_positions as place
  where place.snapshot_at >= :since
) as moved
join app_registry as app
on app.track_id = moved.track_id
left join category_scans as scan
on scan.collection = moved.collection
and scan.category = moved.category
where moved.was > moved.rank
order by moved.was - moved.rank desc, moved.rank, moved.track_id, moved.collection, moved.category
limit :most;

-- name: rising_clusters
-- Markets whose score rose in the window while as much was known, the most first. It goes through the markets there are, some hundreds. Index: the
-- key of cluster_snapshots.
select moved.id, moved.name, moved.opportunity_score, moved.was, moved.opportunity_score - moved.was as change,
  moved.apps, moved.keywords
from (
  select id, name, opportunity_score, apps, keywords, (
    select earlier.opportunity_score
    from cluster_snapshots as earlier
    where earlier.cluster_id = market_clusters.id
    and earlier.snapshot_at >= :since
    and earlier.scores = market_clusters.scores
    and earlier.coverage >= market_clusters.coverage - 0.1
    and earlier.keywords * 10 >= market_clusters.keywords * 8
    order by earlier.snapshot_at
    limit 1
  ) as was
  from market_clusters
  where ended_at is null
) as moved
where moved.opportunity_score > moved.was
order by moved.opportunity_score - moved.was desc, moved.id
limit :most;

-- name: newest
-- The newest moment in the data: what a window is reckoned from, never the clock. One row of each index.
select max(at) as at
from (
  select max(last_seen_at) as at from app_registry
  union all
  select max(started_at) as at from crawl_log
  union all
  select max(snapshot_at) as at from chart_position_history
  union all
  select max(snapshot_at) as at from cluster_snapshots
  union all
  select max(created_at) as at from agent_ledger
  union all
  select max(created_at) as at from opportunity_evaluations
) as seen;

-- name: oldest
-- The first moment in the data. Index: reading_apps_new.
select min(first_seen_at) as at
from app_registry;
