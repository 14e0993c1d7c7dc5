-- What only SQLite needs beside storage/schema.sql, and the views in its dialect.

-- name: create_tokens
create table if not exists penstock_tokens (
  one integer primary key check (one = 1),
  last integer not null
) strict;

-- name: first_token
insert into penstock_tokens (one, last)
values (1, 0)
on conflict do nothing;

-- name: view_dead_messages
create view if not exists dead_messages as
select
  seq as id,
  lower(hex(id)) as event_id,
  queue,
  queue || '-dlq' as dlq,
  handler,
  type,
  source,
  case
    when type <> 'bytes' and reason <> 'corrupt' and json_valid(cast(body as text)) then cast(body as text)
    else quote(body)
  end as payload,
  attempts,
  crashes,
  strftime('%Y-%m-%dT%H:%M:%SZ', failed_at / 1000000, 'unixepoch') as failed_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', first_failed_at / 1000000, 'unixepoch') as first_failed_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', sent_at / 1000000, 'unixepoch') as sent_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', replayed_at / 1000000, 'unixepoch') as replayed_at,
  resolution,
  note,
  lower(hex(correlation_id)) as correlation_id,
  nullif(lower(hex(causation_id)), '') as causation_id,
  nullif(lower(hex(replay_of)), '') as replay_of,
  json_object(
    'event_id', lower(hex(id)),
    'type', type,
    'source', source,
    'timestamp', strftime('%Y-%m-%dT%H:%M:%SZ', sent_at / 1000000, 'unixepoch'),
    'correlation_id', lower(hex(correlation_id)),
    'causation_id', nullif(lower(hex(causation_id)), ''),
    'hops', hops,
    'depth', depth,
    'replay_of', nullif(lower(hex(replay_of)), '')
  ) as envelope,
  error_class,
  error_message,
  replay_count,
  reason
from penstock_dead;

-- name: view_processed_events
create view if not exists processed_events as
select
  lower(hex(id)) as event_id,
  queue as consumer,
  type,
  source,
  strftime('%Y-%m-%dT%H:%M:%SZ', processed_at / 1000000, 'unixepoch') as processed_at
from penstock_seen
where processed_at is not null;

-- name: view_pipeline_log
create view if not exists pipeline_log as
select
  schedule || '@' || due as id,
  schedule as task,
  (
    select json_extract(rule, '$.expression')
    from penstock_timers
    where kind = 'cron'
    and penstock_timers.name = penstock_ticks.schedule
  ) as cron,
  strftime('%Y-%m-%dT%H:%M:%SZ', due / 1000000, 'unixepoch') as due_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', fired_at / 1000000, 'unixepoch') as created_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', started_at / 1000000, 'unixepoch') as started_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', finished_at / 1000000, 'unixepoch') as finished_at,
  status,
  phase,
  missed,
  rows_read,
  rows_written,
  error
from penstock_ticks;

-- name: view_api_calls_ledger
create view if not exists api_calls_ledger as
select
  lower(hex(id)) as id,
  service,
  provider,
  operation,
  units,
  cost / 1000000000.0 as cost,
  at_most / 1000000000.0 as at_most,
  nullif(lower(hex(correlation_id)), '') as correlation_id,
  run,
  case
    when state = 'reserved' and not exists (
      select 1
      from penstock_workers
      where penstock_workers.id = penstock_calls.worker
    ) then 'unknown'
    else state
  end as state,
  strftime('%Y-%m-%dT%H:%M:%SZ', created_at / 1000000, 'unixepoch') as created_at,
  strftime('%Y-%m-%dT%H:%M:%SZ', settled_at / 1000000, 'unixepoch') as settled_at
from penstock_calls;
