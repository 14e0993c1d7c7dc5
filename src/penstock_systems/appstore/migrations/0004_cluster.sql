-- Markets: who is in them, what became of them, who their neighbours are. A market keeps its id for as long as it is the same.

create table market_clusters (
  id bigint primary key,
  lineage_id bigint not null,
  name text not null,
  opportunity_score double precision,
  demand double precision,
  competitiveness double precision,
  fragmentation double precision,
  apps bigint not null default 0,
  keywords bigint not null default 0,
  first_seen_at text not null,
  computed_at text not null,
  ended_at text
);

create index market_clusters_lineage on market_clusters (lineage_id) where ended_at is null;
create index market_clusters_score on market_clusters (opportunity_score desc, id) where ended_at is null;

create table cluster_apps (
  cluster_id bigint not null,
  track_id bigint not null,
  weight double precision not null,
  primary key (cluster_id, track_id)
);

create index cluster_apps_app on cluster_apps (track_id);

create table cluster_keywords (
  cluster_id bigint not null,
  keyword text not null,
  weight double precision not null,
  primary key (cluster_id, keyword)
);

create index cluster_keywords_keyword on cluster_keywords (keyword);

create table cluster_snapshots (
  cluster_id bigint not null,
  snapshot_at text not null,
  opportunity_score double precision,
  demand double precision,
  competitiveness double precision,
  fragmentation double precision,
  apps bigint not null,
  keywords bigint not null,
  primary key (cluster_id, snapshot_at)
);

create index cluster_snapshots_at on cluster_snapshots (snapshot_at);

create table cluster_lineages (
  lineage_id bigint not null,
  cluster_id bigint not null,
  run_at text not null,
  overlap double precision not null,
  primary key (cluster_id, run_at)
);

create index cluster_lineages_lineage on cluster_lineages (lineage_id, run_at);
create index cluster_lineages_at on cluster_lineages (run_at);

create table cluster_relations (
  a bigint not null,
  b bigint not null,
  kind text not null,
  weight double precision not null,
  primary key (a, b, kind)
);

-- What a good market lends to its apps and keywords, apart from their own priority: so it can be taken back.
create table priority_boosts (
  kind text not null check (kind in ('app', 'keyword')),
  subject text not null,
  boost double precision not null,
  base bigint not null,
  updated_at text not null,
  primary key (kind, subject)
);
