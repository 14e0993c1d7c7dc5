-- What the crawl finds: apps, keywords, rankings, charts. Times are text in UTC, 'YYYY-MM-DD HH:MM:SS'; null means not yet.

create table app_registry (
  track_id bigint primary key,
  bundle_id text,
  track_name text not null default 'Unknown',
  seller_name text not null default 'Unknown',
  average_rating double precision,
  rating_count bigint not null default 0,
  primary_genre text,
  price double precision,
  formatted_price text,
  artwork_url text,
  track_view_url text,
  description text,
  release_date text,
  version text,
  content_rating text,
  languages text,
  developer_id bigint,
  developer_website text,
  subtitle text,
  screenshots text,
  rating_histogram text,
  in_app_purchases text,
  iap_scraped_at text,
  iap_scrape_status text,
  similar_apps text,
  data_source text,
  first_seen_at text not null,
  last_seen_at text not null,
  ranked_at text,
  enriched_at text,
  enrichment_source text,
  enrich_priority bigint not null default 0,
  enrich_attempts bigint not null default 0,
  next_enrich_at text,
  enrich_error text,
  competitiveness_score double precision,
  scored_at text,
  rating_velocity_7d double precision,
  rating_count_7d_ago bigint,
  rating_velocity_updated_at text
);

-- Each work list is one index that holds only what waits, in the order in which it is taken.
create index app_registry_fresh on app_registry (enriched_at, enrich_priority desc, rating_count desc)
  where enriched_at is null and next_enrich_at is null;
create index app_registry_due on app_registry (next_enrich_at) where next_enrich_at is not null;
create index app_registry_unranked on app_registry (rating_count desc)
  where enrichment_source = 'scraper' and ranked_at is null;
create index app_registry_no_purchases on app_registry (rating_count desc)
  where enrichment_source = 'scraper' and iap_scraped_at is null;
create index app_registry_known on app_registry (rating_count desc, track_id);
create index app_registry_unseen on app_registry (last_seen_at);
create index app_registry_developer on app_registry (developer_id);

create table crawl_keywords (
  keyword text primary key,
  source text not null,
  source_keyword text,
  depth bigint not null default 0,
  status text not null default 'pending' check (status in ('pending', 'waiting', 'searched', 'failed')),
  priority bigint not null default 0,
  demand double precision,
  app_count bigint,
  known_count bigint,
  attempts bigint not null default 0,
  last_error text,
  last_searched_at text,
  next_search_at text,
  created_at text not null
);

create index crawl_keywords_work on crawl_keywords (status, priority desc, created_at, keyword);
create index crawl_keywords_due on crawl_keywords (next_search_at) where next_search_at is not null;

create table crawl_rankings (
  keyword text not null,
  track_id bigint not null,
  rank bigint not null,
  crawled_at text not null,
  primary key (keyword, track_id)
);

create index crawl_rankings_app on crawl_rankings (track_id, rank);

create table crawl_seeds (
  keyword text primary key,
  note text,
  created_at text not null,
  planted_at text
);

create table crawl_log (
  id text primary key,
  phase text not null,
  stats text not null,
  started_at text not null,
  finished_at text not null,
  error text
);

create index crawl_log_started on crawl_log (started_at);

-- What one stage leaves for another to look at: when rankings last changed, how much of the last results was known.
create table crawl_state (
  name text primary key,
  value text not null,
  updated_at text not null
);

create table category_scans (
  id bigint primary key,
  collection text not null,
  category text not null,
  category_name text not null,
  priority text not null default 'medium',
  sort_order bigint not null default 0,
  scanned_at text,
  apps_found bigint,
  attempts bigint not null default 0,
  last_error text,
  next_scan_at text not null default '',
  unique (collection, category)
);

create index category_scans_due on category_scans (priority, next_scan_at);

create table chart_positions (
  track_id bigint not null,
  collection text not null,
  category text not null,
  rank bigint not null,
  snapshot_at text not null,
  primary key (track_id, collection, category)
);

create table chart_position_history (
  scan_id text not null,
  track_id bigint not null,
  collection text not null,
  category text not null,
  rank bigint not null,
  snapshot_at text not null,
  primary key (scan_id, track_id)
);

create index chart_position_history_at on chart_position_history (snapshot_at);
create index chart_position_history_app on chart_position_history (track_id, snapshot_at);

create table developers (
  developer_id bigint primary key,
  name text not null default 'Unknown',
  website text,
  portfolio_at text,
  first_seen_at text not null
);

-- Deprecated: health goes to the metrics store. Nothing writes it.
create table scan_snapshots (
  id bigint primary key,
  created_at text not null
);
