-- What only PostgreSQL needs beside storage/schema.sql, and the views in its dialect.

-- A number that was drawn is gone, also if its transaction is rolled back: tokens need only never repeat.
-- name: create_tokens
create sequence if not exists penstock_tokens;

-- The last number that each process wrote in a commit: what tells, after a lost connection, whether it happened. Not in
-- penstock_workers, from which others remove a process that they take for dead.
-- name: create_numbers
create table if not exists penstock_numbers (
  worker bigint primary key,
  number bigint not null,
  noted_at bigint not null
);

-- Version 4: databases of version 1 to 3 have no tracebacks.
-- name: add_message_tracebacks
alter table penstock_messages add column if not exists traceback text;

-- name: add_dead_tracebacks
alter table penstock_dead add column if not exists traceback text;

-- name: add_run_tracebacks
alter table penstock_runs add column if not exists traceback text;

-- name: add_step_tracebacks
alter table penstock_steps add column if not exists traceback text;

-- Until version 6 these limits of queues had other names.
-- name: rename_queue_limits
do $$
begin
  alter table penstock_queues rename column wall_seconds to timeout_seconds;
  alter table penstock_queues rename column wait_seconds to batch_wait_seconds;
exception when undefined_column then
  null;
end
$$;

-- Version 3 kept a passed trial among the saved paces.
-- name: move_trial
update penstock_objects
set class = 'TrialRecord',
  name = 'main',
  state = convert_to(cast(convert_from(state, 'UTF8') as json) ->> 'pace', 'UTF8')
where class = 'Remembered'
and name = 'penstock.trial';

-- A body that is no JSON text is shown as SQLite writes it.
-- name: create_body_as_text
create or replace function penstock.body_as_text(body bytea, type text, reason text)
returns text
language plpgsql
immutable
as $$
begin
  if type <> 'bytes' and reason <> 'corrupt' then
    return cast(cast(convert_from(body, 'UTF8') as json) as text);
  end if;
  return 'X' || chr(39) || upper(encode(body, 'hex')) || chr(39);
exception when others then
  return 'X' || chr(39) || upper(encode(body, 'hex')) || chr(39);
end
$$;

-- name: view_dead_messages
create or replace view penstock.dead_messages as
select
  seq as id,
  encode(id, 'hex') as event_id,
  queue,
  queue || '-dlq' as dlq,
  handler,
  type,
  source,
  penstock.body_as_text(body, type, reason) as payload,
  attempts,
  crashes,
  to_char(to_timestamp(failed_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as failed_at,
  to_char(to_timestamp(first_failed_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as first_failed_at,
  to_char(to_timestamp(sent_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as sent_at,
  to_char(to_timestamp(replayed_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as replayed_at,
  resolution,
  note,
  encode(correlation_id, 'hex') as correlation_id,
  encode(causation_id, 'hex') as causation_id,
  encode(replay_of, 'hex') as replay_of,
  cast(json_build_object(
    'event_id', encode(id, 'hex'),
    'type', type,
    'source', source,
    'timestamp', to_char(to_timestamp(sent_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
    'correlation_id', encode(correlation_id, 'hex'),
    'causation_id', encode(causation_id, 'hex'),
    'hops', hops,
    'depth', depth,
    'replay_of', encode(replay_of, 'hex')
  ) as text) as envelope,
  error_class,
  error_message,
  replay_count,
  reason
from penstock_dead;

-- name: view_processed_events
create or replace view penstock.processed_events as
select
  encode(id, 'hex') as event_id,
  queue as consumer,
  type,
  source,
  to_char(to_timestamp(processed_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as processed_at
from penstock_seen
where processed_at is not null;

-- name: view_pipeline_log
create or replace view penstock.pipeline_log as
select
  schedule || '@' || due as id,
  schedule as task,
  (
    select cast(rule as json) ->> 'expression'
    from penstock_timers
    where kind = 'cron'
    and penstock_timers.name = penstock_ticks.schedule
  ) as cron,
  to_char(to_timestamp(due / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as due_at,
  to_char(to_timestamp(fired_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as created_at,
  to_char(to_timestamp(started_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as started_at,
  to_char(to_timestamp(finished_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as finished_at,
  status,
  phase,
  missed,
  rows_read,
  rows_written,
  error
from penstock_ticks;

-- name: view_api_calls_ledger
create or replace view penstock.api_calls_ledger as
select
  encode(id, 'hex') as id,
  service,
  provider,
  operation,
  units,
  cast(cost as double precision) / 1000000000.0 as cost,
  cast(at_most as double precision) / 1000000000.0 as at_most,
  encode(correlation_id, 'hex') as correlation_id,
  run,
  case
    when state = 'reserved' and not exists (
      select 1
      from penstock_workers
      where penstock_workers.id = penstock_calls.worker
    ) then 'unknown'
    else state
  end as state,
  to_char(to_timestamp(created_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as created_at,
  to_char(to_timestamp(settled_at / 1000000) at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as settled_at
from penstock_calls;

-- Triggers on users' tables call it, with whatever rights the user's statement has.
-- name: create_keeping
create or replace function penstock.keep_count()
returns trigger
language plpgsql
security definer
as $$
begin
  if tg_op = 'TRUNCATE' then
    update penstock_counts set total = 0 where name = tg_argv[0];
  elsif tg_op = 'INSERT' then
    update penstock_counts set total = total + (select count(1) from changed) where name = tg_argv[0];
  else
    update penstock_counts set total = total - (select count(1) from changed) where name = tg_argv[0];
  end if;
  return null;
end
$$;
