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
create index app_registry_fresh on app_registry (enrich_priority desc, rating_count desc, track_id)
  where enriched_at is null and next_enrich_at is null;
create index app_registry_due on app_registry (next_enrich_at, track_id) where next_enrich_at is not null;
create index app_registry_unranked on app_registry (rating_count desc, track_id)
  where enrichment_source = 'scraper' and ranked_at is null;
create index app_registry_no_purchases on app_registry (rating_count desc, track_id)
  where enrichment_source = 'scraper' and iap_scraped_at is null;
create index app_registry_scraped on app_registry (enriched_at desc, track_id) where enrichment_source = 'scraper';
create index app_registry_known on app_registry (rating_count desc, track_id);
create index app_registry_unseen on app_registry (last_seen_at, track_id);
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

create index crawl_seeds_unplanted on crawl_seeds (keyword) where planted_at is null;

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

-- The charts that are read: 26 categories that apps are filed under and five kinds of games, in three collections each.
-- A category's priority says how soon its charts are stale; 'paused', or any other word, takes one out.
with collections (place, collection) as (
  values (0, 'topfreeapplications'), (1, 'toppaidapplications'), (2, 'topgrossingapplications')
),
categories (place, category, category_name, priority) as (
  values
    (1, '6014', 'Games', 'high'),
    (2, '6007', 'Productivity', 'high'),
    (3, '6002', 'Utilities', 'high'),
    (4, '6013', 'Health & Fitness', 'high'),
    (5, '6015', 'Finance', 'high'),
    (6, '6017', 'Education', 'high'),
    (7, '6008', 'Photo & Video', 'high'),
    (8, '6012', 'Lifestyle', 'high'),
    (9, '6000', 'Business', 'high'),
    (10, '6016', 'Entertainment', 'high'),
    (11, '6011', 'Music', 'medium'),
    (12, '6005', 'Social Networking', 'medium'),
    (13, '6003', 'Travel', 'medium'),
    (14, '6023', 'Food & Drink', 'medium'),
    (15, '6024', 'Shopping', 'medium'),
    (16, '6004', 'Sports', 'medium'),
    (17, '6020', 'Medical', 'medium'),
    (18, '6018', 'Book', 'medium'),
    (19, '6006', 'Reference', 'medium'),
    (20, '6010', 'Navigation', 'medium'),
    (21, '6027', 'Graphics & Design', 'medium'),
    (22, '6026', 'Developer Tools', 'medium'),
    (23, '7012', 'Games: Puzzle', 'medium'),
    (24, '7003', 'Games: Casual', 'medium'),
    (25, '7017', 'Games: Strategy', 'low'),
    (26, '7015', 'Games: Simulation', 'low'),
    (27, '7019', 'Games: Word', 'low'),
    (28, '6001', 'Weather', 'low'),
    (29, '6009', 'News', 'low'),
    (30, '6021', 'Magazines & Newspapers', 'low'),
    (31, '6025', 'Stickers', 'low')
)
insert into category_scans (id, collection, category, category_name, priority, sort_order)
select collections.place * 31 + categories.place, collections.collection, categories.category,
  categories.category_name, categories.priority, collections.place * 31 + categories.place
from categories
cross join collections
where true
on conflict do nothing;

create table chart_positions (
  track_id bigint not null,
  collection text not null,
  category text not null,
  rank bigint not null,
  snapshot_at text not null,
  primary key (track_id, collection, category)
);

create index chart_positions_chart on chart_positions (collection, category, snapshot_at);

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
