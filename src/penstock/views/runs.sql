-- Runs of workflows and what each has recorded.

-- name: names
select name
from penstock_queues
where name like 'workflow.%'
and accepts = 'workflow.run'
order by name
limit :most;

-- name: found
select runs.key, runs.workflow, runs.id, runs.reason, runs.input, runs.result, runs.error, runs.traceback, runs.generation,
  runs.priority, runs.correlation_id, runs.created_at, runs.ended_at, runs.parent, parents.id as parent_id,
  case
    when runs.state <> 'active' then runs.state
    when messages.worker is not null then 'running'
    when messages.due > :now then 'waiting'
    else 'queued'
  end as state,
  case when messages.worker is null then messages.due end as due
from penstock_runs as runs
left join penstock_runs as parents
on parents.key = runs.parent
left join penstock_messages as messages
on messages.id = runs.key
and messages.queue = 'workflow.' || runs.workflow
and messages.handler = ''
where runs.key = :key;

-- With the last step that each has begun.
-- name: listed
select runs.key, runs.workflow, runs.id, runs.state, runs.reason, runs.error, runs.priority, runs.correlation_id,
  runs.created_at, runs.ended_at, runs.due, steps.name as step
from (
  select key, workflow, id, state, reason, error, priority, correlation_id, created_at, ended_at, due
  from (
    select penstock_runs.key, penstock_runs.workflow, penstock_runs.id, penstock_runs.reason, penstock_runs.error,
      penstock_runs.priority, penstock_runs.correlation_id, penstock_runs.created_at, penstock_runs.ended_at,
      case
        when penstock_runs.state <> 'active' then penstock_runs.state
        when messages.worker is not null then 'running'
        when messages.due > :now then 'waiting'
        else 'queued'
      end as state,
      case when messages.worker is null then messages.due end as due
    from penstock_runs
    left join penstock_messages as messages
    on messages.id = penstock_runs.key
    and messages.queue = 'workflow.' || penstock_runs.workflow
    and messages.handler = ''
    where (cast(:workflow as text) is null or penstock_runs.workflow = :workflow)
    and (cast(:stored as text) is null or penstock_runs.state = :stored)
  ) as every_run
  where cast(:state as text) is null
  or state = :state
  order by created_at desc, id
  limit :most
) as runs
left join penstock_steps as steps
on steps.run = runs.key
and steps.position = (
  select max(position)
  from penstock_steps
  where run = runs.key
)
order by runs.created_at desc, runs.id;

-- name: parked
select key, workflow, id
from penstock_runs
where state = 'paused'
and reason <> 'asked'
and (cast(:workflow as text) is null or workflow = :workflow)
order by created_at
limit :most;

-- name: steps
select position, name, kind, state, attempts, started_at, ended_at, due, result, error, traceback
from penstock_steps
where run = :run
and position > :after
order by position
limit :most;

-- name: signals
select name, sent_at
from penstock_signals
where run = :run
order by seq
limit :most;
