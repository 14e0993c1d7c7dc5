-- What the collector makes of records: listings, the homes they offer, searches, notices. Times are text in UTC.

create view listings_raw as
select source_id, item_id as source_item_id, url, raw_json, content_hash, fetched_at, last_seen_at
from source_records;

create table listings (
  id text primary key,
  source text not null,
  item_id text not null,
  url text not null,
  title text not null default '',
  description text,
  price_base double precision,
  price_total double precision,
  fees double precision,
  currency text,
  rooms double precision,
  area_m2 double precision,
  floor double precision,
  city text,
  neighborhood text,
  street text,
  house_number text,
  lat double precision,
  lon double precision,
  bucket_lat bigint,
  bucket_lon bigint,
  place_key text,
  phone text,
  image text,
  deal text not null,
  broker bigint,
  posted_at text,
  deadline text,
  status text not null,
  first_seen_at text not null,
  changed_at text not null,
  gone_at text,
  home_id text
);

create index listings_bucket on listings (bucket_lat, bucket_lon);
create index listings_place on listings (place_key);
create index listings_home on listings (home_id);
create index listings_fresh on listings (first_seen_at desc, id);
create index listings_changed on listings (changed_at);

create table listing_versions (
  listing_id text not null,
  seen_at text not null,
  kind text not null,
  price_base double precision,
  price_total double precision,
  data text not null,
  primary key (listing_id, seen_at)
);

create table price_holds (
  listing_id text primary key,
  was double precision not null,
  seen double precision not null,
  kind text not null,
  first_seen_at text not null
);

create index price_holds_age on price_holds (first_seen_at);

create table homes (
  id text primary key,
  status text not null,
  first_seen_at text not null,
  changed_at text not null,
  starred bigint not null default 0,
  hidden bigint not null default 0
);

create table home_listings (
  listing_id text primary key,
  home_id text not null,
  score double precision not null,
  why text not null,
  joined_at text not null
);

create table home_splits (
  listing_id text not null,
  other_id text not null,
  decided_at text not null,
  primary key (listing_id, other_id)
);

create table searches (
  id text primary key,
  person text not null,
  name text not null,
  filter_json text not null,
  notify_json text not null,
  paused bigint not null default 0,
  created_at text not null
);

create table search_homes (
  search_id text not null,
  home_id text not null,
  low_base double precision,
  low_total double precision,
  is_silent bigint not null,
  summarised bigint not null default 0,
  matched_at text not null,
  primary key (search_id, home_id)
);

create index search_homes_home on search_homes (home_id);
create index search_homes_silent on search_homes (search_id, matched_at) where is_silent = 1 and summarised = 0;

create table notices (
  id text primary key,
  search_id text not null,
  person text not null,
  home_id text,
  listing_id text,
  reason text not null,
  old double precision,
  new double precision,
  title text not null,
  body text not null,
  created_at text not null,
  send_at text not null,
  send_id text,
  sent_at text
);

create index notices_due on notices (send_at) where send_id is null;
create index notices_person on notices (person, created_at desc);
create index notices_send on notices (send_id);

create table sends (
  id text primary key,
  person text not null,
  search_id text not null,
  channel text not null,
  notify_json text not null,
  status text not null,
  attempts bigint not null,
  intent_at bigint not null,
  retry_at text,
  error text,
  sent_at text
);

create index sends_retry on sends (retry_at) where retry_at is not null;
