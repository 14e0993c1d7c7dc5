-- What keeps a database healthy for months.

-- name: applied
select name, checksum
from penstock_migrations
order by name;

-- name: note_migration
insert into penstock_migrations (name, checksum, applied_at)
values (:name, :checksum, :now);

-- name: add_usage
insert into penstock_usage (month, task, statement, executions, rows_read, rows_written, pages, steps, micros)
values (:month, :task, :statement, :executions, :rows_read, :rows_written, :pages, :steps, :micros)
on conflict (month, task, statement) do update
set executions = penstock_usage.executions + excluded.executions,
  rows_read = penstock_usage.rows_read + excluded.rows_read,
  rows_written = penstock_usage.rows_written + excluded.rows_written,
  pages = penstock_usage.pages + excluded.pages,
  steps = penstock_usage.steps + excluded.steps,
  micros = penstock_usage.micros + excluded.micros;

-- name: prune_once
delete from penstock_once
where (scope, key) in (
  select scope, key
  from penstock_once
  where saved_at < :before
  and not exists (
    select 1
    from penstock_messages
    where penstock_messages.id = substr(penstock_once.scope, 1, 16)
  )
  and not exists (
    select 1
    from penstock_dead
    where penstock_dead.id = substr(penstock_once.scope, 1, 16)
  )
  order by saved_at
  limit :limit
);

-- name: prune_seen
delete from penstock_seen
where (id, queue) in (
  select id, queue
  from penstock_seen
  where seen_at < :before
  and not exists (
    select 1
    from penstock_messages
    where penstock_messages.id = penstock_seen.id
    and penstock_messages.queue = penstock_seen.queue
  )
  and not exists (
    select 1
    from penstock_dead
    where penstock_dead.id = penstock_seen.id
    and penstock_dead.queue = penstock_seen.queue
    and penstock_dead.resolution is null
  )
  order by seen_at
  limit :limit
);

-- name: prune_dead
delete from penstock_dead
where seq in (
  select seq
  from penstock_dead
  where resolution is not null
  and resolved_at < :before
  order by resolved_at
  limit :limit
);

-- name: prune_ticks
delete from penstock_ticks
where (schedule, due) in (
  select schedule, due
  from penstock_ticks
  where fired_at < :before
  order by fired_at
  limit :limit
);

-- A run goes once its steps and signals have gone.
-- name: prune_steps
delete from penstock_steps
where (run, position) in (
  select penstock_steps.run, penstock_steps.position
  from penstock_runs
  join penstock_steps on penstock_steps.run = penstock_runs.key
  where penstock_runs.forget_at < :before
  order by penstock_runs.forget_at
  limit :limit
);

-- name: prune_signals
delete from penstock_signals
where seq in (
  select penstock_signals.seq
  from penstock_runs
  join penstock_signals on penstock_signals.run = penstock_runs.key
  where penstock_runs.forget_at < :before
  order by penstock_runs.forget_at
  limit :limit
);

-- name: prune_runs
delete from penstock_runs
where key in (
  select key
  from penstock_runs
  where forget_at < :before
  and not exists (
    select 1
    from penstock_steps
    where penstock_steps.run = penstock_runs.key
  )
  and not exists (
    select 1
    from penstock_signals
    where penstock_signals.run = penstock_runs.key
  )
  order by forget_at
  limit :limit
);

-- name: prune_audit
delete from penstock_audit
where id in (
  select id
  from penstock_audit
  where at < :before
  or at <= (
    select newest.at
    from penstock_audit as newest
    order by newest.at desc
    limit 1
    offset :rows_max
  )
  order by at
  limit :limit
);

-- name: prune_usage
delete from penstock_usage
where (month, task, statement) in (
  select month, task, statement
  from penstock_usage
  where month < :before
  order by month
  limit :limit
);

-- name: prune_calls
delete from penstock_calls
where id in (
  select id
  from penstock_calls
  where created_at < :before
  order by created_at
  limit :limit
);

-- name: prune_spending
delete from penstock_spending
where (service, scope, period) in (
  select service, scope, period
  from penstock_spending
  where began_at < :before
  order by began_at
  limit :limit
);

-- name: prune_sizes
delete from penstock_sizes
where day in (
  select day
  from penstock_sizes
  where day < :before
  order by day
  limit :limit
);

-- name: note_size
insert into penstock_sizes (day, at, bytes)
values (:day, :at, :bytes)
on conflict (day) do update
set at = excluded.at,
  bytes = excluded.bytes;

-- name: sizes
select at, bytes
from penstock_sizes
order by day;

-- name: start_count
insert into penstock_counts (name, total)
values (:name, 0)
on conflict do nothing;
