-- The history of settled work. What all deliveries of one sort have in common is kept once.

-- name: create_labels
create table if not exists penstock_labels (
  label bigint generated always as identity primary key,
  kind text not null,
  service text not null,
  queue text not null,
  name text not null,
  source text not null,
  attempt bigint not null,
  status text not null,
  seen bigint not null,
  unique (kind, service, queue, name, source, attempt, status)
);

-- name: create_history
create table if not exists penstock_history (
  seq bigint generated always as identity primary key,
  noted_at bigint not null,
  ended_at bigint not null,
  started_at bigint not null,
  correlation_id bytea not null,
  id bytea not null,
  causation_id bytea,
  label bigint not null,
  error text
);

-- name: index_chains
create index if not exists penstock_history_chains
on penstock_history (correlation_id);

-- name: index_ids
create index if not exists penstock_history_ids
on penstock_history (id);

-- name: index_noted
create index if not exists penstock_history_noted
on penstock_history (noted_at);

-- Counted as it is noted: a report over an hour does not read an hour's entries.
-- name: create_minutes
create table if not exists penstock_minutes (
  minute bigint not null,
  label bigint not null,
  count bigint not null,
  primary key (minute, label)
);

-- name: label
insert into penstock_labels (kind, service, queue, name, source, attempt, status, seen)
values (:kind, :service, :queue, :name, :source, :attempt, :status, :seen)
on conflict (kind, service, queue, name, source, attempt, status) do update
set seen = greatest(penstock_labels.seen, excluded.seen)
returning label;

-- name: append
insert into penstock_history (
  noted_at, ended_at, started_at, correlation_id, id, causation_id, label, error
)
select
  :noted_at, ended_at, started_at, correlation_id, id, causation_id, label, error
from unnest(
  cast(:ended_at as bigint[]), cast(:started_at as bigint[]), cast(:correlation_id as bytea[]), cast(:id as bytea[]),
  cast(:causation_id as bytea[]), cast(:label as bigint[]), cast(:error as text[])
) with ordinality as noted (ended_at, started_at, correlation_id, id, causation_id, label, error, place)
order by place;

-- name: count_minutes
insert into penstock_minutes (minute, label, count)
select minute, label, count
from unnest(cast(:minute as bigint[]), cast(:label as bigint[]), cast(:count as bigint[])) as counted (minute, label, count)
order by minute, label
on conflict (minute, label) do update
set count = penstock_minutes.count + excluded.count;

-- name: chain
select
  ended_at, correlation_id, id, causation_id, kind, service, queue, name, source, attempt, status, started_at, error
from penstock_history
join penstock_labels on penstock_labels.label = penstock_history.label
where correlation_id = :correlation_id
order by seq
limit :limit;

-- name: of_message
select
  ended_at, correlation_id, id, causation_id, kind, service, queue, name, source, attempt, status, started_at, error
from penstock_history
join penstock_labels on penstock_labels.label = penstock_history.label
where id = :id
order by seq
limit :limit;

-- name: processed
select penstock_labels.name, penstock_labels.source, cast(sum(penstock_minutes.count) as bigint)
from penstock_minutes
join penstock_labels on penstock_labels.label = penstock_minutes.label
where penstock_minutes.minute >= :since
and penstock_minutes.minute <= :until
and penstock_labels.kind = 'message'
and penstock_labels.status = 'acked'
group by penstock_labels.name, penstock_labels.source
order by sum(penstock_minutes.count) desc, penstock_labels.name, penstock_labels.source
limit :limit;

-- name: per_minute
select penstock_minutes.minute, cast(sum(penstock_minutes.count) as bigint)
from penstock_minutes
join penstock_labels on penstock_labels.label = penstock_minutes.label
where penstock_minutes.minute >= :since
and penstock_minutes.minute <= :until
and penstock_labels.kind = 'message'
and penstock_labels.status = 'acked'
group by penstock_minutes.minute
order by penstock_minutes.minute
limit :limit;

-- name: settled
select penstock_minutes.minute, penstock_labels.queue, penstock_labels.status, cast(sum(penstock_minutes.count) as bigint)
from penstock_minutes
join penstock_labels on penstock_labels.label = penstock_minutes.label
where penstock_minutes.minute >= :since
and penstock_minutes.minute <= :until
and penstock_labels.kind = 'message'
group by penstock_minutes.minute, penstock_labels.queue, penstock_labels.status
order by penstock_minutes.minute desc, penstock_labels.queue, penstock_labels.status
limit :limit;

-- name: latest
select
  ended_at, correlation_id, id, causation_id, kind, service, queue, name, source, attempt, status, started_at, error
from penstock_history
join penstock_labels on penstock_labels.label = penstock_history.label
where noted_at <= :until
order by noted_at desc, seq desc
limit :limit;

-- name: prune_minutes
delete from penstock_minutes
where minute < (select max(minute) from penstock_minutes) - :kept;

-- name: prune_labels
delete from penstock_labels
where seen < :before - :day
and not exists (select 1 from penstock_history where penstock_history.label = penstock_labels.label)
and not exists (select 1 from penstock_minutes where penstock_minutes.label = penstock_labels.label);

-- name: prune
delete from penstock_history
where seq in (
  select seq
  from penstock_history
  where noted_at < :before
  order by noted_at
  limit :limit
);

-- name: bytes
select sum(pg_total_relation_size(to_regclass(name)))
from (
  values
    ('penstock.penstock_history'), ('penstock.penstock_minutes'), ('penstock.penstock_points'),
    ('penstock.penstock_rolled'), ('penstock.penstock_sorts')
) as kept (name);

-- name: has_points
select to_regclass('penstock.penstock_samples');
