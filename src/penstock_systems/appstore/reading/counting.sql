-- Apps by stage reached, and what it took. Each count goes through an index, not through the rows; tables whose count
-- the app keeps are not counted here at all.

-- name: enriched
-- Index: reading_apps_enriched.
select count(*) as total
from app_registry
where enrichment_source <> 'failed';

-- name: scored
-- Index: reading_apps_strong.
select count(*) as total
from app_registry
where competitiveness_score is not null;

-- name: clustered
-- Indexes: reading_markets_best, the key of cluster_apps.
select count(distinct member.track_id) as total
from market_clusters as market
join cluster_apps as member
on member.cluster_id = market.id
where market.ended_at is null;

-- name: evaluated
-- Apps of markets that were evaluated. Index: opportunity_evaluations_lineage.
select count(distinct member.track_id) as total
from market_clusters as market
join cluster_apps as member
on member.cluster_id = market.id
where market.ended_at is null
and exists (
  select 1
  from opportunity_evaluations as seen
  where seen.lineage_id = market.lineage_id
);

-- name: markets_known
select count(*) as total
from market_clusters
where ended_at is null;

-- name: developers_known
select count(*) as total
from developers;

-- name: paid_calls
-- What was paid for, by whom it was asked of.
select provider, operation, count(*) as calls, cast(sum(cost) as double precision) as usd
from api_calls_ledger
group by provider, operation
order by provider, operation
limit :most;

-- name: relations
-- Who is near whom, on the map.
select a, b, max(weight) as weight
from cluster_relations
group by a, b
order by max(weight) desc, a, b
limit :most;
