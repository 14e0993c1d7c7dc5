-- The sources of connectors, where each stands, what its runs did, and the records that were read. Times are text in UTC.

create table sources (
  id bigint primary key,
  name text not null unique,
  kind text not null,
  enabled bigint not null default 1,
  created_at text not null
);

create table source_state (
  source_id bigint primary key,
  cursor text,
  verdict text,
  last_status text,
  last_error text,
  last_run_at text,
  last_started_at text,
  last_success_at text,
  last_nonzero_at text,
  next_run_at text,
  backoff_until text,
  consecutive_failures bigint not null default 0,
  disabled_reason text,
  memory text not null default '{}'
);

create table source_runs (
  source_id bigint not null,
  started_at text not null,
  ended_at text not null,
  verdict text not null,
  error text,
  candidates bigint not null,
  inserted bigint not null,
  changed bigint not null,
  gone bigint not null,
  back bigint not null,
  pages bigint not null,
  requests bigint not null,
  refused bigint not null,
  cursor_before text,
  cursor_after text,
  primary key (source_id, started_at)
);

create index source_runs_ended on source_runs (ended_at);

create table source_records (
  source_id bigint not null,
  item_id text not null,
  url text not null,
  data text not null,
  raw_json text,
  content_hash text not null,
  fetched_at text not null,
  last_seen_at text not null,
  missed bigint not null default 0,
  gone_at text,
  primary key (source_id, item_id)
);

-- What a complete run is compared with: only records that are not gone.
create index source_records_active on source_records (source_id, item_id) where gone_at is null;
