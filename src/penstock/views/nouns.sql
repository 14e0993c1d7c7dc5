-- Single nouns: the audit, objects, cron tasks, paces and the cost of a month.

-- name: audit_listed
select at, actor, origin, verb, kind, name, before, after, count
from penstock_audit
where (cast(:name as text) is null or name = :name or name like '%/' || :name)
and (cast(:verb as text) is null or verb = :verb or verb like :verb || ' %')
order by at desc
limit :most;

-- name: objects_listed
select objects.class, objects.name, objects.epoch, objects.owner, objects.hint, objects.alarm_lost, objects.saved_at,
  length(objects.state) as bytes, timers.due as alarm_at, objects.created_at,
  case when cast(:name as text) is not null then objects.state end as state
from penstock_objects as objects
left join penstock_timers as timers
on timers.kind = 'alarm'
and timers.name = objects.class || '/' || objects.name
where (cast(:class as text) is null or objects.class = :class)
and (cast(:name as text) is null or objects.name = :name)
order by objects.class, objects.name
limit :most;

-- name: conditions
select name, state, saved_at
from penstock_objects
where class = 'AlertCondition'
order by name
limit :most;

-- name: crons_listed
select timers.name, timers.due, timers.number as fired, timers.rule, timers.paused, ticks.status as last_status,
  ticks.fired_at as last_at, ticks.error as last_error
from penstock_timers as timers
left join penstock_ticks as ticks
on ticks.schedule = timers.name
and ticks.due = (
  select max(due)
  from penstock_ticks
  where schedule = timers.name
)
where timers.kind = 'cron'
order by timers.name
limit :most;

-- name: crons_ended
select status, count(*) as runs
from penstock_ticks
where schedule = :task
and due > :since
group by status
order by runs desc;

-- name: paces_saved
select class, name, state, saved_at
from penstock_objects
where class in ('Controller', 'Remembered')
order by name, class
limit :most;

-- What objects were asked and took is of a month; what they keep is of now.
-- name: cost_objects
select asked.class, asked.requests, asked.micros / 1000000.0 as seconds, asked.saves, count(objects.name) as count,
  coalesce(sum(length(objects.state)), 0) as bytes
from (
  select substr(task, length('object.') + 1) as class, executions as requests, micros, rows_written as saves
  from penstock_usage
  where month = :month
  and statement = 'penstock:object_requests'
) as asked
left join penstock_objects as objects
on objects.class = asked.class
group by asked.class, asked.requests, asked.micros, asked.saves
order by asked.class;

-- name: cost_sums
select service, scope, calls, reserved, settled
from penstock_spending
where (scope = 'month' and period = :month)
or (scope = 'day' and period = :day)
order by service
limit :most;

-- name: cost_by_kind
select service, provider, operation, count(*) as calls, coalesce(sum(units), 0) as units, sum(cost) as cost,
  sum(case when is_known then 0 else cost end) as unknown
from (
  select service, provider, operation, units, cost,
    state in ('settled', 'released') or (state = 'reserved' and worker in (select id from penstock_workers)) as is_known
  from penstock_calls
  where created_at >= :since
  and created_at < :until
) as made
group by service, provider, operation
order by sum(cost) desc, service, provider, operation
limit :most;
