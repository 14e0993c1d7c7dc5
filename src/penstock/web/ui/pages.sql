-- What pages read. Every statement has a limit, so that a page costs the same however full the database is.

-- From the queue `first` on, by name. Counters say how many there are; only the first that is due is looked up.
-- name: queues
with named as (
  select name, paused, parallel, parallel_tuned, rate, rate_tuned, next_start
  from penstock_queues
  where name >= :first
  and (
    :internal = 1
    or not (
      name like 'cron.%' or name like 'object.%' or name like 'workflow.%' or name like 'penstock.%' or name like '%-dlq'
    )
  )
  order by name
  limit :most
),
counted as (
  select queue, sum(sent) as sent, sum(acked) as acked, sum(dead) as dead, sum(purged) as purged, sum(expired) as expired
  from penstock_counters
  where queue in (select name from named)
  group by queue
)
select named.name, named.paused, named.parallel, named.parallel_tuned, named.rate, named.rate_tuned, named.next_start,
  coalesce(counted.sent, 0) as sent,
  coalesce(counted.acked, 0) as acked,
  coalesce(counted.dead, 0) as dead,
  coalesce(counted.purged, 0) as purged,
  coalesce(counted.expired, 0) as expired,
  (
    select min((
      select due
      from penstock_messages
      where queue = named.name
      and priority = priorities.column1
      and worker is null
      order by due
      limit 1
    ))
    from (values (0), (1), (2)) as priorities
  ) as first_due
from named
left join counted on counted.queue = named.name
order by named.name;

-- name: leased
select queue, count(*) as leased
from (
  select queue
  from penstock_messages
  where worker is not null
  and due > 0
  limit :most
) as leased
group by queue;

-- How many of a queue are due, and how many wait for a time: those that failed, and those that were sent so.
-- name: split
select
  (
    select count(*)
    from (
      select 1
      from penstock_messages
      where queue = :queue
      and priority in (0, 1, 2)
      and worker is null
      and due <= :now
      limit :most
    ) as due_now
  ) as ready,
  (
    select count(*)
    from (
      select 1
      from penstock_messages
      where queue = :queue
      and priority in (0, 1, 2)
      and worker is null
      and due > :now
      limit :most
    ) as due_later
  ) as delayed,
  (
    select count(*)
    from (
      select error_class
      from penstock_messages
      where queue = :queue
      and priority in (0, 1, 2)
      and worker is null
      and due > :now
      limit :most
    ) as due_later
    where error_class is not null
  ) as failed;

-- name: waiting
select id, type, priority, due, attempts, sent_at, error_class, error_message, traceback
from penstock_messages
where queue = :queue
and priority = :priority
and worker is null
order by due
limit :most;

-- name: under_way
select messages.id, messages.type, messages.due, messages.attempts, messages.sent_at, messages.worker, workers.host,
  workers.pid
from (
  select id, queue, type, due, attempts, sent_at, worker
  from penstock_messages
  where worker is not null
  and due > 0
  limit :scanned
) as messages
left join penstock_workers as workers on workers.id = messages.worker
where messages.queue = :queue
limit :most;

-- Processes and what each serves.
-- name: handlers
select worker, queue, type
from penstock_handlers
order by queue, type, handler, worker
limit :most;

-- name: served
select distinct queue, worker
from penstock_handlers
limit :most;

-- The newest dead letters, from which causes are counted.
-- name: dead_before
select seq, id, queue, type, reason, error_class, error_message, attempts, failed_at, replay_count, edited_at
from penstock_dead
where resolution is null
and failed_at <= :before
order by failed_at desc
limit :most
offset :skip;

-- name: dead_of_queue_before
select seq, id, queue, type, reason, error_class, error_message, attempts, failed_at, replay_count, edited_at
from penstock_dead
where resolution is null
and queue = :queue
and failed_at <= :before
order by failed_at desc
limit :most
offset :skip;

-- name: message_body
select body
from penstock_messages
where id = :id
limit 1;

-- name: dead_body
select body
from penstock_dead
where id = :id
order by failed_at desc
limit 1;

-- name: dead_traceback
select traceback
from penstock_dead
where seq = :seq;

-- name: dead_with_text
select seq, id, queue, type, reason, error_class, error_message, attempts, failed_at, replay_count, edited_at
from (
  select seq, id, queue, type, reason, error_class, error_message, attempts, failed_at, replay_count, edited_at, body
  from penstock_dead
  where resolution is null
  and failed_at <= :before
  order by failed_at desc
  limit :window
) as newest
where replace(lower(coalesce(error_message, '')), lower(cast(:text as text)), '') <> lower(coalesce(error_message, ''))
order by failed_at desc
limit :most;

-- name: dead_window_end
select min(failed_at) as failed_at, count(*) as scanned
from (
  select failed_at
  from penstock_dead
  where resolution is null
  and failed_at <= :before
  order by failed_at desc
  limit :window
) as newest;

-- name: dead_resolved_last
select resolved_at, resolution, queue
from penstock_dead
where resolution is not null
order by resolved_at desc
limit 1;

-- name: runs_newest
select key, workflow, id, state, reason, error, correlation_id, created_at, ended_at
from penstock_runs
where created_at <= :before
order by created_at desc
limit :most
offset :skip;

-- name: runs_of_workflow
select key, workflow, id, state, reason, error, correlation_id, created_at, ended_at
from penstock_runs
where workflow = :workflow
and created_at <= :before
order by created_at desc
limit :most
offset :skip;

-- name: runs_paused
select key, workflow, id, state, reason, error, correlation_id, created_at, ended_at
from penstock_runs
where state = 'paused'
and created_at <= :before
order by created_at desc
limit :most
offset :skip;

-- name: runs_errored
select key, workflow, id, state, reason, error, correlation_id, created_at, ended_at
from penstock_runs
where state = 'errored'
and created_at <= :before
order by created_at desc
limit :most
offset :skip;

-- The last step of a run, and its message: whether it runs, waits or is queued.
-- name: run_now
select messages.worker, messages.due,
  (
    select name
    from penstock_steps
    where run = :key
    order by position desc
    limit 1
  ) as step
from (select 1 as one) as always
left join penstock_messages as messages
on messages.id = :key
and messages.queue = 'workflow.' || cast(:workflow as text)
and messages.handler = '';

-- Messages of runs that wait the longest: among them those that wait for a signal.
-- name: runs_waiting
select runs.key, runs.workflow, runs.id, runs.created_at, messages.due, steps.name as step, steps.kind, steps.started_at
from (
  select id, due
  from penstock_messages
  where queue = :queue
  and priority = :priority
  and worker is null
  order by due desc
  limit :most
) as messages
join penstock_runs as runs on runs.key = messages.id
join penstock_steps as steps
on steps.run = runs.key
and steps.position = (
  select max(position)
  from penstock_steps
  where run = runs.key
)
where steps.kind = 'signal'
and steps.state = 'waiting'
and runs.state = 'active'
order by runs.created_at;

-- name: ticks
select due, fired_at, started_at, finished_at, status, phase, missed, rows_read, rows_written, error
from penstock_ticks
where schedule = :task
and due <= :before
order by due desc
limit :most;

-- name: crons
select name, due, number as fired, rule, paused
from penstock_timers
where kind = 'cron'
order by name
limit :most;

-- name: objects
select class, name, epoch, owner, alarm_lost, saved_at, length(state) as bytes
from penstock_objects
where class >= :class
and (class > :class or name >= :name)
order by class, name
limit :most;

-- name: objects_of_class
select class, name, epoch, owner, alarm_lost, saved_at, length(state) as bytes
from penstock_objects
where class = :class
and name >= :name
order by name
limit :most;

-- name: alarm_of
select due
from penstock_timers
where kind = 'alarm'
and name = :name;

-- name: object_state
select state, created_at, saved_at, epoch, owner, alarm_lost, hint
from penstock_objects
where class = :class
and name = :name;

-- name: audit
select at, actor, origin, verb, kind, name, before, after, count
from penstock_audit
where at <= :before
order by at desc
limit :most;

-- name: spent
select calls, reserved, settled, began_at
from penstock_spending
where service = :service
and scope = :scope
and period = :period;

-- name: calls
select service, provider, operation, cost
from penstock_calls
where created_at >= :since
and created_at < :until
order by created_at desc
limit :most;

-- name: sizes
select day, bytes
from penstock_sizes
order by day desc
limit 30;

-- name: letter_numbered
select seq
from penstock_dead
where seq = :letter;

-- What became of a letter under the id of its replay: whether it waits, and the letter it became again.
-- name: replay_fate
select
  (
    select count(*)
    from (
      select 1
      from penstock_messages
      where id = :id
      and queue = :queue
      limit 1
    ) as waiting
  ) as waits,
  (
    select max(seq)
    from penstock_dead
    where id = :id
    and queue = :queue
  ) as dead;
