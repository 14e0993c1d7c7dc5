-- The history of settled work, in a file of its own. It is written for every delivery and seldom read, so a row
-- is as short as it can be. `seq` is the microsecond an entry was noted at, or the next free number: it never lies before
-- the end of the delivery, `late` is how far behind. So a bound on time is a bound on the table's own order.

-- What all deliveries of one sort have in common. `seen` is the day on which it was last used.
-- name: create_labels
create table if not exists labels (
  label integer primary key,
  kind text not null,
  service text not null,
  queue text not null,
  name text not null,
  source text not null,
  attempt integer not null,
  status text not null,
  seen integer not null,
  unique (kind, service, queue, name, source, attempt, status)
) strict;

-- `id` is null for the first message of a chain, which has the chain's id.
-- name: create_entries
create table if not exists entries (
  seq integer primary key,
  correlation_id blob not null,
  id blob,
  causation_id blob,
  label integer not null,
  late integer not null,
  micros integer not null,
  error text
) strict;

-- name: index_chains
create index if not exists entries_chains
on entries (correlation_id);

-- name: index_ids
create index if not exists entries_ids
on entries (id)
where id is not null;

-- Counted as it is noted: a report over an hour does not read an hour's entries.
-- name: create_minutes
create table if not exists minutes (
  minute integer not null,
  label integer not null,
  count integer not null,
  primary key (minute, label)
) strict, without rowid;

-- name: create_told
create view if not exists told as
select
  entries.seq,
  entries.seq - entries.late as ended_at,
  entries.correlation_id,
  coalesce(entries.id, entries.correlation_id) as message_id,
  entries.id as later_id,
  entries.causation_id,
  labels.kind,
  labels.service,
  labels.queue,
  labels.name,
  labels.source,
  labels.attempt,
  labels.status,
  entries.seq - entries.late - entries.micros as started_at,
  entries.error
from entries
join labels on labels.label = entries.label;

-- name: has_points
select 1
from sqlite_schema
where name = 'penstock_samples';

-- name: last
select coalesce(max(seq), 0)
from entries;

-- name: label
insert into labels (kind, service, queue, name, source, attempt, status, seen)
values (?, ?, ?, ?, ?, ?, ?, ?)
on conflict (kind, service, queue, name, source, attempt, status) do update
set seen = max(seen, excluded.seen)
returning label;

-- name: append
insert into entries (seq, correlation_id, id, causation_id, label, late, micros, error)
values (?, ?, ?, ?, ?, ?, ?, ?);

-- name: count_minutes
insert into minutes (minute, label, count)
select (seq - late) / 60000000 * 60000000, label, count(*)
from entries
where seq >= :first
group by 1, 2
on conflict (minute, label) do update
set count = count + excluded.count;

-- name: chain
select
  ended_at, correlation_id, message_id, causation_id, kind, service, queue, name, source, attempt, status, started_at,
  error
from told
where correlation_id = :correlation_id
order by seq
limit :limit;

-- name: of_later_message
select
  ended_at, correlation_id, message_id, causation_id, kind, service, queue, name, source, attempt, status, started_at,
  error
from told
where later_id = :id
order by seq
limit :limit;

-- name: of_first_message
select
  ended_at, correlation_id, message_id, causation_id, kind, service, queue, name, source, attempt, status, started_at,
  error
from told
where correlation_id = :id
and later_id is null
order by seq
limit :limit;

-- name: processed
select labels.name, labels.source, sum(minutes.count)
from minutes
join labels on labels.label = minutes.label
where minutes.minute >= :since
and minutes.minute <= :until
and labels.kind = 'message'
and labels.status = 'acked'
group by labels.name, labels.source
order by sum(minutes.count) desc, labels.name, labels.source
limit :limit;

-- name: per_minute
select minutes.minute, sum(minutes.count)
from minutes
join labels on labels.label = minutes.label
where minutes.minute >= :since
and minutes.minute <= :until
and labels.kind = 'message'
and labels.status = 'acked'
group by minutes.minute
order by minutes.minute
limit :limit;

-- name: settled
select minutes.minute, labels.queue, labels.status, sum(minutes.count)
from minutes
join labels on labels.label = minutes.label
where minutes.minute >= :since
and minutes.minute <= :until
and labels.kind = 'message'
group by minutes.minute, labels.queue, labels.status
order by minutes.minute desc, labels.queue, labels.status
limit :limit;

-- name: latest
select
  ended_at, correlation_id, message_id, causation_id, kind, service, queue, name, source, attempt, status, started_at,
  error
from told
where seq <= :until
order by seq desc
limit :limit;

-- name: prune_minutes
delete from minutes
where (minute, label) in (
  select minute, label
  from minutes
  where minute < (select max(minute) from minutes) - :kept
  order by minute
  limit :limit
);

-- name: prune_labels
delete from labels
where label in (
  select label
  from labels
  where seen < (
    select min(coalesce((select min(seq) from entries), :now), coalesce((select min(minute) from minutes), :now))
  ) - :day
  limit :limit
);

-- Last, because it says how much is done.
-- name: prune
delete from entries
where seq in (
  select seq
  from entries
  where seq < :before
  order by seq
  limit :limit
);
