-- A listing may have an implausible rent with fees and one without: each is held on its own.
-- penstock: allow drop

create table price_holds_by_kind (
  listing_id text not null,
  kind text not null,
  was double precision not null,
  seen double precision not null,
  first_seen_at text not null,
  primary key (listing_id, kind)
);

insert into price_holds_by_kind (listing_id, kind, was, seen, first_seen_at)
select listing_id, kind, was, seen, first_seen_at
from price_holds;

drop table price_holds;

alter table price_holds_by_kind rename to price_holds;

create index price_holds_since on price_holds (first_seen_at);
