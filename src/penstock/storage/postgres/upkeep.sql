-- What PostgreSQL alone knows about itself.

-- name: size
select pg_database_size(current_database());

-- Changes with every commit that did something.
-- name: last_number
select last_value
from penstock_tokens;

-- name: server_time
select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint);

-- A table that was dropped and made anew has lost its triggers, and its count is wrong.
-- name: count_is_kept
select count(*) = 3
from pg_trigger
where tgrelid = to_regclass(:checked)
and tgname like 'penstock_count_%'
and exists (
  select 1
  from penstock_counts
  where penstock_counts.name = :name
);

-- name: prune_numbers
delete from penstock_numbers
where noted_at < :before
and not exists (
  select 1
  from penstock_workers
  where penstock_workers.id = penstock_numbers.worker
);
