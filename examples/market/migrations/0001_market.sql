create table apps (
  track_id bigint primary key,
  title text not null,
  genre bigint,
  found_by text not null,
  found_at text not null,
  rating double precision,
  ratings bigint,
  enriched_at text
);

create index apps_pending on apps (track_id) where enriched_at is null;

create table keywords (
  word text primary key,
  searched_at text
);

create table charts (
  genre bigint primary key,
  crawled_at text
);

create index charts_wilted on charts (genre) where crawled_at is null;
