-- What was made of the markets: the newest evaluation of each, and all that belongs to one.

-- name: opportunities
-- The newest evaluation of each market that is still there, the best first, under the market's name and score of today.
-- Indexes: reading_markets_best, opportunity_evaluations_cluster, opportunity_evaluations_lineage.
select seen.id, seen.cluster_id, seen.lineage_id, market.name, market.opportunity_score as score, seen.score as judged,
  market.coverage, seen.verdict, seen.reason, seen.made_by, seen.created_at
from market_clusters as market
join opportunity_evaluations as seen
on seen.cluster_id = market.id
where market.ended_at is null
and market.franchise is null
and not exists (
  select 1
  from opportunity_evaluations as newer
  where newer.lineage_id = seen.lineage_id
  and newer.created_at >= seen.created_at
  and (newer.created_at > seen.created_at or newer.id > seen.id)
)
order by coalesce(market.opportunity_score, -1) desc, market.id
limit :most;

-- name: opportunity
-- One evaluation.
select id, cluster_id, lineage_id, name, score, verdict, reason, facts, made_by, run_id, created_at
from opportunity_evaluations
where id = :id
limit 1;

-- name: opportunity_of_market
-- The newest evaluation of a market. Index: opportunity_evaluations_cluster.
select id, cluster_id, lineage_id, name, score, verdict, reason, facts, made_by, run_id, created_at
from opportunity_evaluations
where cluster_id = :market
order by created_at desc, id desc
limit 1;

-- name: earlier_evaluations
-- What was thought of the same market before. Index: opportunity_evaluations_lineage.
select id, score, verdict, made_by, created_at
from opportunity_evaluations
where lineage_id = :lineage
order by created_at desc, id desc
limit :most;

-- name: references
-- The apps that an evaluation refers to. Index: the key of opportunity_reference_apps.
select named.track_id, named.role, app.track_name, app.seller_name, app.average_rating, app.rating_count,
  app.rating_velocity_7d, app.formatted_price, app.track_view_url
from opportunity_reference_apps as named
left join app_registry as app
on app.track_id = named.track_id
where named.evaluation_id = :id
order by coalesce(app.rating_count, 0) desc, named.track_id
limit :most;

-- name: methods
-- Which ways to market it were weighed, the best first, each with an example. Index: the key of opportunity_method_scores.
select weighed.method_id, method.name, weighed.score, weighed.reason, (
    select example.body
    from case_studies as example
    where example.method_id = weighed.method_id
    order by example.id
    limit 1
  ) as example
from opportunity_method_scores as weighed
left join marketing_methods as method
on method.id = weighed.method_id
where weighed.evaluation_id = :id
order by weighed.score desc, weighed.method_id
limit :most;

-- name: debates
-- The debate for and against it. Index: debate_reports_evaluation.
select id, summary, created_at
from debate_reports
where evaluation_id = :id
order by created_at desc, id
limit :most;

-- name: debate_messages
-- The debate itself. Index: the key of debate_messages.
select seq, agent, text
from debate_messages
where report_id = :id
order by seq
limit :most;

-- name: tips
-- The tips of one evaluation. Index: market_tips_cluster.
select id, text, created_at
from market_tips
where cluster_id = :market
and evaluation_id = :id
order by created_at, id
limit :most;

-- name: playbooks
-- How one would go about it. Index: marketing_playbooks_evaluation.
select id, body, created_at
from marketing_playbooks
where evaluation_id = :id
order by created_at desc, id
limit :most;
