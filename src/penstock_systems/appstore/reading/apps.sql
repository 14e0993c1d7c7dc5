-- Apps, in the orders and by the ways in which people look for them. A `limit` bounds each, an index is behind each.

-- name: apps_by_ratings
-- The best known. Index: app_registry_known.
select track_id, track_name, seller_name, primary_genre, average_rating, rating_count, rating_velocity_7d,
  competitiveness_score, formatted_price, enrichment_source, first_seen_at, last_seen_at
from app_registry
order by rating_count desc, track_id
limit :most;

-- name: apps_by_velocity
-- Those that win the most ratings a day. Index: reading_apps_rising.
select track_id, track_name, seller_name, primary_genre, average_rating, rating_count, rating_velocity_7d,
  competitiveness_score, formatted_price, enrichment_source, first_seen_at, last_seen_at
from app_registry
where rating_velocity_7d is not null
order by rating_velocity_7d desc, track_id
limit :most;

-- name: apps_by_competitiveness
-- The strongest by the competitiveness agent's score. Index: reading_apps_strong.
select track_id, track_name, seller_name, primary_genre, average_rating, rating_count, rating_velocity_7d,
  competitiveness_score, formatted_price, enrichment_source, first_seen_at, last_seen_at
from app_registry
where competitiveness_score is not null
order by competitiveness_score desc, track_id
limit :most;

-- name: apps_by_newest
-- Those that were found last. Index: reading_apps_new.
select track_id, track_name, seller_name, primary_genre, average_rating, rating_count, rating_velocity_7d,
  competitiveness_score, formatted_price, enrichment_source, first_seen_at, last_seen_at
from app_registry
order by first_seen_at desc, track_id
limit :most;

-- name: apps_of_genre
-- The best known of a category. Index: reading_apps_genre.
select track_id, track_name, seller_name, primary_genre, average_rating, rating_count, rating_velocity_7d,
  competitiveness_score, formatted_price, enrichment_source, first_seen_at, last_seen_at
from app_registry
where primary_genre = :genre
order by rating_count desc, track_id
limit :most;

-- name: apps_of_market
-- The apps of a market, those that belong to it most first. Index: the key of cluster_apps.
select app.track_id, app.track_name, app.seller_name, app.primary_genre, app.average_rating, app.rating_count,
  app.rating_velocity_7d, app.competitiveness_score, app.formatted_price, app.enrichment_source, app.first_seen_at,
  app.last_seen_at, member.weight
from cluster_apps as member
join app_registry as app
on app.track_id = member.track_id
where member.cluster_id = :market
order by member.weight desc, app.rating_count desc, app.track_id
limit :most;

-- name: apps_of_keyword
-- Who ranks for a keyword. Index: the key of crawl_rankings; a search has at most 200 places.
select app.track_id, app.track_name, app.seller_name, app.primary_genre, app.average_rating, app.rating_count,
  app.rating_velocity_7d, app.competitiveness_score, app.formatted_price, app.enrichment_source, app.first_seen_at,
  app.last_seen_at, place.rank
from crawl_rankings as place
join app_registry as app
on app.track_id = place.track_id
where place.keyword = :keyword
order by place.rank, app.track_id
limit :most;

-- name: apps_of_developer
-- All that a developer has in the store. Index: app_registry_developer.
select track_id, track_name, seller_name, primary_genre, average_rating, rating_count, rating_velocity_7d,
  competitiveness_score, formatted_price, enrichment_source, first_seen_at, last_seen_at
from app_registry
where developer_id = :developer
order by rating_count desc, track_id
limit :most;

-- name: app
-- All that is known of one app itself.
select track_id, bundle_id, track_name, subtitle, seller_name, developer_id, developer_website, primary_genre, price,
  formatted_price, average_rating, rating_count, rating_histogram, rating_velocity_7d, rating_count_7d_ago,
  rating_velocity_updated_at, competitiveness_score, scored_at, in_app_purchases, similar_apps, languages, content_rating,
  version, release_date, description, track_view_url, artwork_url, data_source, enrichment_source, enriched_at,
  enrich_priority, enrich_attempts, next_enrich_at, enrich_error, first_seen_at, last_seen_at
from app_registry
where track_id = :id
limit 1;

-- name: app_keywords
-- What it ranks for. Index: crawl_rankings_app.
select place.keyword, place.rank, word.demand, place.crawled_at
from crawl_rankings as place
left join crawl_keywords as word
on word.keyword = place.keyword
where place.track_id = :id
order by place.rank, place.keyword
limit :most;

-- name: app_charts
-- Where it stands in the charts. Index: the key of chart_positions.
select place.collection, place.category, scan.category_name, place.rank, place.snapshot_at
from chart_positions as place
left join category_scans as scan
on scan.collection = place.collection
and scan.category = place.category
where place.track_id = :id
order by place.rank, place.collection, place.category
limit :most;

-- name: app_markets
-- Which markets it is in. Index: cluster_apps_app.
select market.id, market.name, market.opportunity_score, member.weight
from cluster_apps as member
join market_clusters as market
on market.id = member.cluster_id
where member.track_id = :id
and market.ended_at is null
order by member.weight desc, market.id
limit :most;

-- name: app_days
-- Its last days. Index: the key of app_snapshots.
select day, rating_count, average_rating, rank
from app_snapshots
where track_id = :id
order by day desc
limit :most;

-- name: app_reviews
-- What was last said about it. Index: app_reviews_app.
select review_id, rating, title, body, sentiment, version, reviewed_at
from app_reviews
where track_id = :id
order by reviewed_at desc, review_id
limit :most;

-- name: app_versions
-- Its releases. Index: the key of app_version_history.
select version, released_at, notes
from app_version_history
where track_id = :id
order by coalesce(released_at, '') desc, version desc
limit :most;

-- name: findings
-- What the agents found out about an app, a keyword or a market, the newest first. Index: agent_ledger_subject.
select agent, version, score, explanation, created_at
from agent_ledger
where subject_type = :kind
and subject_id = :subject
order by created_at desc, id
limit :most;
