-- A listing may have an implausible rent with fees and one without: each is held on its own.
-- penstock: allow drop

create table price_holds_before (
  listing_id text primary key,
  was double precision not null,
  seen double precision not null,
  kind text not null,
  first_seen_at text not null
);

insert into price_holds_before (listing_id, was, seen, kind, first_seen_at)
select listing_id, was, seen, kind, first_seen_at
from price_holds;

drop table price_holds;

create table price_holds (
  listing_id text not null,
  kind text not null,
  was double precision not null,
  seen double precision not null,
  first_seen_at text not null,
  primary key (listing_id, kind)
);

create index price_holds_since on price_holds (first_seen_at);

insert into price_holds (listing_id, kind, was, seen, first_seen_at)
select listing_id, kind, was, seen, first_seen_at
from price_holds_before;

drop table price_holds_before;
