-- What one app's own pages tell: reviews, versions, words.

create table app_reviews (
  review_id text primary key,
  track_id bigint not null,
  rating bigint not null,
  title text,
  body text,
  sentiment double precision,
  version text,
  edited bigint not null default 0,
  reviewed_at text not null,
  seen_at text not null
);

create index app_reviews_app on app_reviews (track_id, reviewed_at);

create table app_version_history (
  track_id bigint not null,
  version text not null,
  released_at text,
  notes text,
  primary key (track_id, version)
);

create table app_keyword_mentions (
  track_id bigint not null,
  keyword text not null,
  field text not null,
  count bigint not null,
  primary key (track_id, keyword)
);

create index app_keyword_mentions_keyword on app_keyword_mentions (keyword);
