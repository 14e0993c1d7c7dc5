-- The engine's tables. Everything that waits is a row with a due time (microseconds, UTC).
-- `worker` is who holds the row, null while it waits; while it is held, `due` is the end of the lease.
-- `token` changes on every claim and release: together with `seq` it fences every commit.

-- name: create_facts
create table if not exists penstock_facts (
  name text primary key,
  value any
) strict, without rowid;

-- name: create_messages
create table if not exists penstock_messages (
  seq integer primary key,
  id blob not null,
  handler text not null default '',
  queue text not null,
  priority integer not null,
  due integer not null,
  token integer not null default 0,
  worker integer,
  attempts integer not null default 0,
  crashes integer not null default 0,
  rounds integer not null default 0,
  type text not null,
  source text not null,
  correlation_id blob not null,
  causation_id blob,
  hops integer not null,
  depth integer not null,
  sent_at integer not null,
  checksum integer not null,
  body blob not null,
  flags integer not null default 0,
  expires integer,
  replay_of blob,
  replays integer not null default 0,
  first_failed_at integer,
  last_failed_at integer,
  error_class text,
  error_message text,
  traceback text,
  unique (id, queue, handler)
) strict
--postgres with (
--postgres   autovacuum_vacuum_scale_factor = 0.02,
--postgres   autovacuum_vacuum_threshold = 1000,
--postgres   autovacuum_vacuum_cost_delay = 0,
--postgres   autovacuum_analyze_scale_factor = 0.1
--postgres )
;

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
  seq integer primary key autoincrement,
  id blob not null,
  handler text not null,
  queue text not null,
  priority integer not null,
  type text not null,
  source text not null,
  correlation_id blob not null,
  causation_id blob,
  hops integer not null,
  depth integer not null,
  sent_at integer not null,
  checksum integer not null,
  body blob not null,
  flags integer not null,
  replay_of blob,
  replay_count integer not null,
  attempts integer not null,
  crashes integer not null,
  reason text not null,
  error_class text,
  error_message text,
  first_failed_at integer,
  failed_at integer not null,
  warned_at integer,
  edited_at integer,
  replayed_at integer,
  resolved_at integer,
  resolution text,
  note text,
  traceback text
) strict;

-- name: index_dead
create index if not exists penstock_dead_unresolved
on penstock_dead (queue, failed_at)
where resolution is null;

-- name: index_dead_ids
create index if not exists penstock_dead_ids
on penstock_dead (id);

-- The newest of all queues, for pages.
-- name: index_dead_newest
create index if not exists penstock_dead_newest
on penstock_dead (failed_at)
where resolution is null;

-- name: index_dead_resolved
create index if not exists penstock_dead_resolved
on penstock_dead (resolved_at)
where resolution is not null;

-- What `_tuned` is null was left as the app declares it. `next_start` is when the rate lets the next message begin;
-- `second` and `second_sent` count what was sent in the current second, where that has a bound.
-- name: create_queues
create table if not exists penstock_queues (
  name text primary key,
  paused integer not null default 0,
  retries integer not null,
  retry_first_seconds real not null,
  retry_longest_seconds real not null,
  timeout_seconds real not null,
  crashes_max integer not null,
  batch integer not null default 1,
  batch_wait_seconds real not null default 0.0,
  parallel integer,
  parallel_tuned integer,
  rate real,
  rate_tuned real,
  next_start integer not null default 0,
  messages_max integer,
  bytes_max integer,
  per_second_max integer,
  second integer not null default 0,
  second_sent integer not null default 0,
  retention_seconds real,
  dead_retention_seconds real,
  accepts text,
  watched integer not null default 0
) strict, without rowid;

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
  worker integer not null,
  queue text not null,
  type text not null,
  handler text not null,
  primary key (queue, type, handler, worker)
) strict, without rowid;

-- Ids that can come back: a caller's own, a key, an HTTP request's. `processed_at` is null until it is done.
-- name: create_seen
create table if not exists penstock_seen (
  id blob not null,
  queue text not null,
  type text not null,
  source text not null,
  seen_at integer not null,
  processed_at integer,
  primary key (id, queue)
) strict, without rowid;

-- name: index_seen
create index if not exists penstock_seen_at
on penstock_seen (seen_at);

-- A timer becomes a message when it is due. `rule` says how its next due time follows; without one it goes.
-- `scheduled` is the due time before jitter; `number` is how often it has fired.
-- name: create_timers
create table if not exists penstock_timers (
  seq integer primary key,
  kind text not null,
  name text not null,
  due integer not null,
  scheduled integer not null,
  number integer not null default 0,
  queue text not null,
  type text not null,
  rule text,
  paused integer not null default 0,
  unique (kind, name)
) strict;

-- name: index_timers
create index if not exists penstock_timers_due
on penstock_timers (due)
where paused = 0;

-- One row a run of a cron task, made in the commit that fires it.
-- name: create_ticks
create table if not exists penstock_ticks (
  schedule text not null,
  due integer not null,
  fired_at integer not null,
  started_at integer,
  finished_at integer,
  status text not null,
  phase text,
  missed integer not null default 0,
  rows_read integer,
  rows_written integer,
  error text,
  primary key (schedule, due)
) strict, without rowid;

-- name: index_ticks
create index if not exists penstock_ticks_fired
on penstock_ticks (fired_at);

-- `owner` is the worker in whose memory it lives; `epoch` goes up with each new owner and fences every save.
-- name: create_objects
create table if not exists penstock_objects (
  class text not null,
  name text not null,
  state blob not null,
  epoch integer not null default 0,
  owner integer,
  wanted integer,
  hint text,
  alarm_lost integer not null default 0,
  created_at integer not null,
  saved_at integer not null,
  primary key (class, name)
) strict, without rowid;

-- name: index_objects_owned
create index if not exists penstock_objects_owned
on penstock_objects (owner)
where owner is not null;

-- name: create_items
create table if not exists penstock_items (
  controller text not null,
  item text not null,
  state text not null,
  attempts integer not null,
  due integer not null,
  error text,
  primary key (controller, item)
) strict, without rowid;

-- One row a run of a workflow. Its message, which has its key for an id, says what it waits for and whether it runs.
-- `generation` is how often it was restarted; after `forget_at` it goes.
-- name: create_runs
create table if not exists penstock_runs (
  key blob primary key,
  workflow text not null,
  id text not null,
  state text not null,
  reason text,
  input blob not null,
  result blob,
  error text,
  generation integer not null default 0,
  priority integer not null,
  correlation_id blob not null,
  parent blob,
  parent_step text,
  created_at integer not null,
  ended_at integer,
  forget_at integer,
  traceback text
) strict, without rowid;

-- name: index_runs_forgotten
create index if not exists penstock_runs_forgotten
on penstock_runs (forget_at)
where forget_at is not null;

-- name: index_runs_created
create index if not exists penstock_runs_created
on penstock_runs (created_at);

-- name: index_runs_of_workflow
create index if not exists penstock_runs_of_workflow
on penstock_runs (workflow, created_at);

-- Runs that wait for an operator.
-- name: index_runs_stopped
create index if not exists penstock_runs_stopped
on penstock_runs (state, created_at)
where state in ('paused', 'errored');

-- name: index_runs_children
create index if not exists penstock_runs_children
on penstock_runs (parent)
where parent is not null;

-- `position` is the order in which the steps of a run began.
-- name: create_steps
create table if not exists penstock_steps (
  run blob not null,
  position integer not null,
  name text not null,
  kind text not null,
  state text not null,
  attempts integer not null,
  started_at integer not null,
  ended_at integer,
  due integer,
  result blob,
  error text,
  traceback text,
  primary key (run, position)
) strict, without rowid;

-- Signals that no run has got yet.
-- name: create_signals
create table if not exists penstock_signals (
  seq integer primary key autoincrement,
  run blob not null,
  name text not null,
  payload blob not null,
  sent_at integer not null
) strict;

-- name: index_signals
create index if not exists penstock_signals_run
on penstock_signals (run, name);

-- name: create_classes
create table if not exists penstock_classes (
  class text primary key,
  tag text not null,
  applied_at integer not null
) strict, without rowid;

-- name: create_workers
create table if not exists penstock_workers (
  id integer primary key autoincrement,
  host text not null,
  pid integer not null,
  started_at integer not null,
  number integer not null default 0
) strict;

-- name: create_counters
create table if not exists penstock_counters (
  queue text not null,
  worker integer not null,
  sent integer not null default 0,
  acked integer not null default 0,
  dead integer not null default 0,
  purged integer not null default 0,
  expired integer not null default 0,
  bytes integer not null default 0,
  primary key (queue, worker)
) strict, without rowid;

-- name: create_once
create table if not exists penstock_once (
  scope blob not null,
  key text not null,
  result blob not null,
  saved_at integer not null,
  primary key (scope, key)
) strict, without rowid;

-- name: index_once
create index if not exists penstock_once_saved
on penstock_once (saved_at);

-- name: create_migrations
create table if not exists penstock_migrations (
  name text primary key,
  checksum text not null,
  applied_at integer not null
) strict, without rowid;

-- name: create_counts
create table if not exists penstock_counts (
  name text primary key,
  total integer not null
) strict, without rowid;

-- name: create_usage
create table if not exists penstock_usage (
  month text not null,
  task text not null,
  statement text not null,
  executions integer not null,
  rows_read integer not null,
  rows_written integer not null,
  pages integer not null,
  steps integer not null,
  micros integer not null,
  primary key (month, task, statement)
) strict, without rowid;

-- name: create_sizes
create table if not exists penstock_sizes (
  day text primary key,
  at integer not null,
  bytes integer not null
) strict, without rowid;

-- Paid calls. `at_most` is what was reserved before the call, `cost` what counts: the same until it is settled. Money is in
-- billionths of a dollar. What a worker that is gone has reserved and not settled counts for good.
-- name: create_calls
create table if not exists penstock_calls (
  id blob primary key,
  service text not null,
  provider text not null,
  operation text not null,
  run text,
  correlation_id blob,
  worker integer not null,
  state text not null,
  at_most integer not null,
  units integer,
  cost integer not null,
  created_at integer not null,
  settled_at integer
) strict, without rowid;

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
  calls integer not null,
  reserved integer not null,
  settled integer not null,
  began_at integer not null,
  primary key (service, scope, period)
) strict, without rowid;

-- name: index_spending_began
create index if not exists penstock_spending_began
on penstock_spending (began_at);

-- What operators changed. `before` and `after` are JSON of what differs; `count` is how many things were changed.
-- name: create_audit
create table if not exists penstock_audit (
  id blob primary key,
  at integer not null,
  actor text not null,
  origin text not null,
  verb text not null,
  kind text not null,
  name text not null,
  before text,
  after text,
  count integer not null
) strict, without rowid;

-- name: index_audit
create index if not exists penstock_audit_at
on penstock_audit (at);
