-- Data points: words to group by and numbers to add up, saved a batch at a time beside the history. A batch is one JSON
-- object, whose keys are numbers and whose values are rows: both databases read it alike, in one statement.
-- What all points of one sort have in common, their index and their words, is kept once; `sort` is a digest of it, and
-- `until` the day on which nothing that is kept can need it any more.

-- name: create_sorts
create table if not exists penstock_sorts (
  sort integer not null primary key,
  until text collate binary not null,
  dataset text not null,
  index1 text,
  blob1 text, blob2 text, blob3 text, blob4 text, blob5 text, blob6 text, blob7 text, blob8 text, blob9 text,
  blob10 text, blob11 text, blob12 text, blob13 text, blob14 text, blob15 text, blob16 text, blob17 text,
  blob18 text, blob19 text, blob20 text
) strict;

-- name: index_sorts
create index if not exists penstock_sorts_ends
on penstock_sorts (until);

-- name: create_points
create table if not exists penstock_points (
  seq integer primary key,
  dataset text not null,
  at text collate binary not null,
  sort integer not null,
  double1 real, double2 real, double3 real, double4 real, double5 real, double6 real, double7 real, double8 real,
  double9 real, double10 real, double11 real, double12 real, double13 real, double14 real, double15 real,
  double16 real, double17 real, double18 real, double19 real, double20 real
) strict;

-- name: index_points
create index if not exists penstock_points_times
on penstock_points (dataset, at);

-- name: create_rolled
create table if not exists penstock_rolled (
  span text not null,
  at text collate binary not null,
  dataset text not null,
  sort integer not null,
  place integer not null,
  count integer not null,
  sum real,
  min real,
  max real,
  primary key (span, at, dataset, sort, place)
) strict, without rowid;

-- name: create_tallies
create table if not exists penstock_tallies (
  day text collate binary not null,
  dataset text not null,
  written integer not null,
  dropped integer not null,
  refused integer not null,
  asked integer not null,
  bytes integer not null,
  primary key (day, dataset)
) strict, without rowid;

-- name: create_samples
create table if not exists penstock_samples (
  kind text primary key,
  at integer not null
) strict, without rowid;

-- name: used
select coalesce(sum(written), 0), coalesce(sum(asked), 0)
from penstock_tallies
where day = :day;

-- name: tally
insert into penstock_tallies (day, dataset, written, dropped, refused, asked, bytes)
select :day, key, cast(value ->> 0 as bigint), cast(value ->> 1 as bigint), cast(value ->> 2 as bigint),
  cast(value ->> 3 as bigint), cast(value ->> 4 as bigint)
from json_each(:batch)
where true
on conflict (day, dataset) do update
set written = penstock_tallies.written + excluded.written,
  dropped = penstock_tallies.dropped + excluded.dropped,
  refused = penstock_tallies.refused + excluded.refused,
  asked = penstock_tallies.asked + excluded.asked,
  bytes = penstock_tallies.bytes + excluded.bytes;

-- name: note_sorts
insert into penstock_sorts (
  sort, until, dataset, index1, blob1, blob2, blob3, blob4, blob5, blob6, blob7, blob8, blob9, blob10, blob11, blob12,
  blob13, blob14, blob15, blob16, blob17, blob18, blob19, blob20
)
select
  cast(value ->> 0 as bigint), value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
  value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, value ->> 13, value ->> 14, value ->> 15,
  value ->> 16, value ->> 17, value ->> 18, value ->> 19, value ->> 20, value ->> 21, value ->> 22, value ->> 23
from json_each(:batch)
where true
on conflict (sort) do update
set until = excluded.until
where penstock_sorts.until < excluded.until;

-- name: note_points
insert into penstock_points (
  dataset, at, sort, double1, double2, double3, double4, double5, double6, double7, double8, double9, double10,
  double11, double12, double13, double14, double15, double16, double17, double18, double19, double20
)
select
  value ->> 0, value ->> 1, cast(value ->> 2 as bigint), cast(value ->> 3 as double precision),
  cast(value ->> 4 as double precision), cast(value ->> 5 as double precision),
  cast(value ->> 6 as double precision), cast(value ->> 7 as double precision),
  cast(value ->> 8 as double precision), cast(value ->> 9 as double precision),
  cast(value ->> 10 as double precision), cast(value ->> 11 as double precision),
  cast(value ->> 12 as double precision), cast(value ->> 13 as double precision),
  cast(value ->> 14 as double precision), cast(value ->> 15 as double precision),
  cast(value ->> 16 as double precision), cast(value ->> 17 as double precision),
  cast(value ->> 18 as double precision), cast(value ->> 19 as double precision),
  cast(value ->> 20 as double precision), cast(value ->> 21 as double precision),
  cast(value ->> 22 as double precision)
from json_each(:batch);

-- The same for points with few numbers, which most are: half the work.
-- name: note_short_points
insert into penstock_points (dataset, at, sort, double1, double2, double3, double4)
select
  value ->> 0, value ->> 1, cast(value ->> 2 as bigint), cast(value ->> 3 as double precision),
  cast(value ->> 4 as double precision), cast(value ->> 5 as double precision),
  cast(value ->> 6 as double precision)
from json_each(:batch);

-- Added up as they are noted: a question over a year does not read a year's points. Place 1 is for `double1` and so on;
-- place 0 counts the points themselves.
-- name: roll_up
insert into penstock_rolled (span, at, dataset, sort, place, count, sum, min, max)
select value ->> 0, value ->> 1, value ->> 2, cast(value ->> 3 as bigint), cast(value ->> 4 as bigint),
  cast(value ->> 5 as bigint), cast(value ->> 6 as double precision), cast(value ->> 7 as double precision),
  cast(value ->> 8 as double precision)
from json_each(:batch)
where true
on conflict (span, at, dataset, sort, place) do update
set count = penstock_rolled.count + excluded.count,
  sum = penstock_rolled.sum + excluded.sum,
  min = case when excluded.min < penstock_rolled.min then excluded.min else penstock_rolled.min end,
  max = case when excluded.max > penstock_rolled.max then excluded.max else penstock_rolled.max end;

-- When the state of the whole database was last written down, by whichever process.
-- name: sampled
select at
from penstock_samples
where kind = :kind;

-- name: note_sample
insert into penstock_samples (kind, at)
values (:kind, :now)
on conflict (kind) do update
set at = excluded.at;

-- name: sizes
select day, sum(bytes)
from penstock_tallies
group by day
order by day desc;

-- Points lie in the order they were noted in, which is nearly that of their times: the oldest are looked at.
-- name: prune_points
delete from penstock_points
where seq in (
  select seq
  from (
    select seq, at
    from penstock_points
    order by seq
    limit :limit
  ) as oldest
  where at < :before
)
returning 1;

-- name: prune_rolled
delete from penstock_rolled
where (span, at, dataset, sort, place) in (
  select span, at, dataset, sort, place
  from penstock_rolled
  where span = :span
  and at < :before
  limit :limit
)
returning 1;

-- name: prune_sorts
delete from penstock_sorts
where sort in (
  select sort
  from penstock_sorts
  where until < :before
  limit :limit
)
returning 1;

-- name: prune_tallies
delete from penstock_tallies
where day < :before;
