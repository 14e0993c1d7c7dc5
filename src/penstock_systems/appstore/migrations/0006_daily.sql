-- A day's facts, one row a subject and day, and what runs left behind.

create table tracked_keywords (
  keyword text primary key,
  added_by text not null,
  created_at text not null
);

create table app_snapshots (
  track_id bigint not null,
  day text not null,
  rating_count bigint not null,
  average_rating double precision,
  rank bigint,
  snapshot_at text not null,
  primary key (track_id, day)
);

create index app_snapshots_at on app_snapshots (snapshot_at);
create index app_snapshots_day on app_snapshots (day, track_id);

create table keyword_snapshots (
  keyword text not null,
  day text not null,
  metrics text not null,
  snapshot_at text not null,
  primary key (keyword, day)
);

create index keyword_snapshots_at on keyword_snapshots (snapshot_at);

create table ranking_snapshots (
  keyword text not null,
  track_id bigint not null,
  day text not null,
  rank bigint not null,
  snapshot_at text not null,
  primary key (keyword, track_id, day)
);

create index ranking_snapshots_at on ranking_snapshots (snapshot_at);

create table pipelines (
  id text primary key,
  name text not null,
  status text not null check (status in ('running', 'done', 'failed')),
  started_at text not null,
  finished_at text,
  error text
);

create index pipelines_name on pipelines (name, started_at);
create index pipelines_at on pipelines (started_at);

create table pipeline_steps (
  pipeline_id text not null,
  name text not null,
  status text not null,
  counts text not null,
  started_at text not null,
  finished_at text,
  primary key (pipeline_id, name)
);

create table keyword_cache (
  key text primary key,
  value text not null,
  expires_at text not null
);

create index keyword_cache_expires on keyword_cache (expires_at);

create table app_cache (
  key text primary key,
  value text not null,
  expires_at text not null
);

create index app_cache_expires on app_cache (expires_at);

create table dfs_keyword_cache (
  keyword text primary key,
  response text not null,
  fetched_at text not null
);
