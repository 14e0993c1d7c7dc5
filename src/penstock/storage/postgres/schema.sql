-- The engine's tables. Everything that waits is a row with a due time (microseconds, UTC).
-- `worker` is who holds the row, null while it waits; while it is held, `due` is the end of the lease.
-- `token` changes on every claim and release: together with `seq` it fences every commit.

-- name: create_schema
create schema if not exists penstock;

-- name: create_facts
create table if not exists penstock_facts (
  name text primary key,
  value text
);

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

-- name: create_messages
create table if not exists penstock_messages (
  seq bigint generated always as identity primary key,
  id bytea not null,
  handler text not null default '',
  queue text not null,
  priority bigint not null,
  due bigint not null,
  token bigint not null default 0,
  worker bigint,
  attempts bigint not null default 0,
  crashes bigint not null default 0,
  rounds bigint not null default 0,
  type text not null,
  source text not null,
  correlation_id bytea not null,
  causation_id bytea,
  hops bigint not null,
  depth bigint not null,
  sent_at bigint not null,
  checksum bigint not null,
  body bytea not null,
  flags bigint not null default 0,
  expires bigint,
  replay_of bytea,
  replays bigint not null default 0,
  first_failed_at bigint,
  last_failed_at bigint,
  error_class text,
  error_message text,
  traceback text,
  unique (id, queue, handler)
)
with (
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0.1
);

-- name: index_waiting
create index if not exists penstock_messages_waiting
on penstock_messages (queue, priority, due)
where worker is null;

-- name: index_leased
create index if not exists penstock_messages_leased
on penstock_messages (due)
where worker is not null;

-- name: index_expiring
create index if not exists penstock_messages_expiring
on penstock_messages (expires)
where expires is not null
and worker is null;

-- name: create_dead
create table if not exists penstock_dead (
  seq bigint generated always as identity primary key,
  id bytea not null,
  handler text not null,
  queue text not null,
  priority bigint not null,
  type text not null,
  source text not null,
  correlation_id bytea not null,
  causation_id bytea,
  hops bigint not null,
  depth bigint not null,
  sent_at bigint not null,
  checksum bigint not null,
  body bytea not null,
  flags bigint not null,
  replay_of bytea,
  replay_count bigint not null,
  attempts bigint not null,
  crashes bigint not null,
  reason text not null,
  error_class text,
  error_message text,
  first_failed_at bigint,
  failed_at bigint not null,
  warned_at bigint,
  edited_at bigint,
  replayed_at bigint,
  resolved_at bigint,
  resolution text,
  note text,
  traceback text
);

-- name: index_dead
create index if not exists penstock_dead_unresolved
on penstock_dead (queue, failed_at)
where resolution is null;

-- name: index_dead_ids
create index if not exists penstock_dead_ids
on penstock_dead (id);

-- name: index_dead_resolved
create index if not exists penstock_dead_resolved
on penstock_dead (resolved_at)
where resolution is not null;

-- What `_tuned` is null was left as the app declares it. `next_start` is when the rate lets the next message begin;
-- `second` and `second_sent` count what was sent in the current second, where that has a bound.
-- name: create_queues
create table if not exists penstock_queues (
  name text primary key,
  paused bigint not null default 0,
  retries bigint not null,
  retry_first_seconds double precision not null,
  retry_longest_seconds double precision not null,
  wall_seconds double precision not null,
  crashes_max bigint not null,
  batch bigint not null default 1,
  wait_seconds double precision not null default 0.0,
  parallel bigint,
  parallel_tuned bigint,
  rate double precision,
  rate_tuned double precision,
  next_start bigint not null default 0,
  messages_max bigint,
  bytes_max bigint,
  per_second_max bigint,
  second bigint not null default 0,
  second_sent bigint not null default 0,
  retention_seconds double precision,
  dead_retention_seconds double precision,
  accepts text,
  watched bigint not null default 0
);

-- name: index_queues_held
create index if not exists penstock_queues_held
on penstock_queues (name)
where paused = 1
or rate is not null
or rate_tuned is not null
or parallel_tuned is not null;

-- Which types each live worker can run: what one does not know is left to another that does.
-- name: create_handlers
create table if not exists penstock_handlers (
  worker bigint not null,
  queue text not null,
  type text not null,
  handler text not null,
  primary key (queue, type, handler, worker)
);

-- Ids that can come back: a caller's own, a key, an HTTP request's. `processed_at` is null until it is done.
-- name: create_seen
create table if not exists penstock_seen (
  id bytea not null,
  queue text not null,
  type text not null,
  source text not null,
  seen_at bigint not null,
  processed_at bigint,
  primary key (id, queue)
);

-- name: index_seen
create index if not exists penstock_seen_at
on penstock_seen (seen_at);

-- A timer becomes a message when it is due. `rule` says how its next due time follows; without one it goes.
-- `scheduled` is the due time before jitter; `number` is how often it has fired.
-- name: create_timers
create table if not exists penstock_timers (
  seq bigint generated always as identity primary key,
  kind text not null,
  name text not null,
  due bigint not null,
  scheduled bigint not null,
  number bigint not null default 0,
  queue text not null,
  type text not null,
  rule text,
  paused bigint not null default 0,
  unique (kind, name)
);

-- name: index_timers
create index if not exists penstock_timers_due
on penstock_timers (due)
where paused = 0;

-- One row a run of a cron task, made in the commit that fires it.
-- name: create_ticks
create table if not exists penstock_ticks (
  schedule text not null,
  due bigint not null,
  fired_at bigint not null,
  started_at bigint,
  finished_at bigint,
  status text not null,
  phase text,
  missed bigint not null default 0,
  rows_read bigint,
  rows_written bigint,
  error text,
  primary key (schedule, due)
);

-- name: index_ticks
create index if not exists penstock_ticks_fired
on penstock_ticks (fired_at);

-- `owner` is the worker in whose memory it lives; `epoch` goes up with each new owner and fences every save.
-- name: create_objects
create table if not exists penstock_objects (
  class text not null,
  name text not null,
  state bytea not null,
  epoch bigint not null default 0,
  owner bigint,
  wanted bigint,
  hint text,
  alarm_lost bigint not null default 0,
  created_at bigint not null,
  saved_at bigint not null,
  primary key (class, name)
);

-- name: index_objects_owned
create index if not exists penstock_objects_owned
on penstock_objects (owner)
where owner is not null;

-- name: create_items
create table if not exists penstock_items (
  controller text not null,
  item text not null,
  state text not null,
  attempts bigint not null,
  due bigint not null,
  error text,
  primary key (controller, item)
);

-- One row a run of a workflow. What it waits for, and whether it runs, is told by its message, which has its key for an id.
-- `generation` is how often it was restarted; after `forget_at` it goes.
-- name: create_runs
create table if not exists penstock_runs (
  key bytea primary key,
  workflow text not null,
  id text not null,
  state text not null,
  reason text,
  input bytea not null,
  result bytea,
  error text,
  generation bigint not null default 0,
  priority bigint not null,
  correlation_id bytea not null,
  parent bytea,
  parent_step text,
  created_at bigint not null,
  ended_at bigint,
  forget_at bigint,
  traceback text
);

-- name: index_runs_forgotten
create index if not exists penstock_runs_forgotten
on penstock_runs (forget_at)
where forget_at is not null;

-- name: index_runs_children
create index if not exists penstock_runs_children
on penstock_runs (parent)
where parent is not null;

-- `position` is the order in which the steps of a run began.
-- name: create_steps
create table if not exists penstock_steps (
  run bytea not null,
  position bigint not null,
  name text not null,
  kind text not null,
  state text not null,
  attempts bigint not null,
  started_at bigint not null,
  ended_at bigint,
  due bigint,
  result bytea,
  error text,
  traceback text,
  primary key (run, position)
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

-- Signals that no run has got yet.
-- name: create_signals
create table if not exists penstock_signals (
  seq bigint generated always as identity primary key,
  run bytea not null,
  name text not null,
  payload bytea not null,
  sent_at bigint not null
);

-- name: index_signals
create index if not exists penstock_signals_run
on penstock_signals (run, name);

-- name: create_classes
create table if not exists penstock_classes (
  class text primary key,
  tag text not null,
  applied_at bigint not null
);

-- name: create_workers
create table if not exists penstock_workers (
  id bigint generated always as identity primary key,
  host text not null,
  pid bigint not null,
  started_at bigint not null,
  number bigint not null default 0
);

-- name: create_counters
create table if not exists penstock_counters (
  queue text not null,
  worker bigint not null,
  sent bigint not null default 0,
  acked bigint not null default 0,
  dead bigint not null default 0,
  purged bigint not null default 0,
  expired bigint not null default 0,
  bytes bigint not null default 0,
  primary key (queue, worker)
);

-- name: create_once
create table if not exists penstock_once (
  scope bytea not null,
  key text not null,
  result bytea not null,
  saved_at bigint not null,
  primary key (scope, key)
);

-- name: index_once
create index if not exists penstock_once_saved
on penstock_once (saved_at);

-- name: create_migrations
create table if not exists penstock_migrations (
  name text primary key,
  checksum text not null,
  applied_at bigint not null
);

-- name: create_counts
create table if not exists penstock_counts (
  name text primary key,
  total bigint not null
);

-- name: create_usage
create table if not exists penstock_usage (
  month text not null,
  task text not null,
  statement text not null,
  executions bigint not null,
  rows_read bigint not null,
  rows_written bigint not null,
  pages bigint not null,
  steps bigint not null,
  micros bigint not null,
  primary key (month, task, statement)
);

-- Paid calls. `at_most` is what was reserved before the call, `cost` what counts: the same until it is settled. Money is in
-- billionths of a dollar. What a worker that is gone has reserved and not settled counts for good.
-- name: create_calls
create table if not exists penstock_calls (
  id bytea primary key,
  service text not null,
  provider text not null,
  operation text not null,
  run text,
  correlation_id bytea,
  worker bigint not null,
  state text not null,
  at_most bigint not null,
  units bigint,
  cost bigint not null,
  created_at bigint not null,
  settled_at bigint
);

-- name: index_calls_created
create index if not exists penstock_calls_created
on penstock_calls (created_at);

-- name: index_calls_runs
create index if not exists penstock_calls_runs
on penstock_calls (run)
where run is not null;

-- name: index_calls_reserved
create index if not exists penstock_calls_reserved
on penstock_calls (service)
where state = 'reserved';

-- What the calls of a run, a day and a month have cost, so that a budget is checked by looking at one row.
-- name: create_spending
create table if not exists penstock_spending (
  service text not null,
  scope text not null,
  period text not null,
  calls bigint not null,
  reserved bigint not null,
  settled bigint not null,
  began_at bigint not null,
  primary key (service, scope, period)
);

-- name: index_spending_began
create index if not exists penstock_spending_began
on penstock_spending (began_at);

-- name: create_sizes
create table if not exists penstock_sizes (
  day text primary key,
  at bigint not null,
  bytes bigint not null
);

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
