-- Runs of workflows, their steps and signals.

-- name: create
insert into penstock_runs (
  key, workflow, id, state, input, priority, correlation_id, parent, parent_step, created_at
)
values (:key, :workflow, :id, :state, :input, :priority, :correlation_id, :parent, :parent_step, :created_at)
on conflict (key) do nothing;

-- name: add_step
insert into penstock_steps (
  run, position, name, kind, state, attempts, started_at, ended_at, due, result, error, traceback
)
values (
  :run, :position, :name, :kind, :state, :attempts, :started_at, :ended_at, :due, :result, :error, :traceback
)
on conflict (run, position) do nothing;

-- name: note_step
insert into penstock_steps (
  run, position, name, kind, state, attempts, started_at, ended_at, due, result, error, traceback
)
values (
  :run, :position, :name, :kind, :state, :attempts, :started_at, :ended_at, :due, :result, :error, :traceback
)
on conflict (run, position) do update
set state = excluded.state,
  attempts = excluded.attempts,
  ended_at = excluded.ended_at,
  due = excluded.due,
  result = excluded.result,
  error = excluded.error,
  traceback = excluded.traceback;

-- name: end
update penstock_runs
set state = :state,
  reason = null,
  result = :result,
  error = :error,
  traceback = :traceback,
  ended_at = :now,
  forget_at = :forget_at
where key = :key
and state in ('active', 'paused')
and generation = case when cast(:generation as integer) < 0 then generation else :generation end;

-- name: parent
select parent, parent_step
from penstock_runs
where key = :key
and parent is not null;

-- Every change of what a run waits for locks this row first, one after the other.
-- name: lock
select workflow, state
from penstock_runs
where key = :key
--postgres for update
;

-- name: signal
insert into penstock_signals (run, name, payload, sent_at)
values (:key, :name, :payload, :now);

-- name: waits
select result
from penstock_steps
where run = :key
and kind = 'signal'
and state = 'waiting'
and result is not null;

-- name: take_signal
delete from penstock_signals
where seq = :seq;

-- name: is_signalled
select 1
from penstock_signals
where run = :key
and name = :name
limit 1;

-- A row that a transaction is just changing is skipped: the process that suspends a run looks for signals after this.
-- name: wake
update penstock_messages
set due = :now
where seq in (
  select seq
  from penstock_messages
  where id = :key
  and queue = :queue
  and handler = ''
  and worker is null
  and due > :now
  and token >= :claimed
  --postgres for update skip locked
);

-- name: forgive
update penstock_messages
set crashes = 0,
  attempts = 0
where seq = :seq;

-- name: park
update penstock_runs
set state = 'paused',
  reason = :reason,
  error = :error
where key = :key
and state = 'active';

-- name: resume
update penstock_runs
set state = 'active',
  reason = null,
  error = null
where key = :key
and state = 'paused';

-- name: hold_message
update penstock_messages
set flags = flags | :pausing,
  due = case when worker is null then :never else due end
where id = :key
and queue = :queue
and handler = '';

-- name: free_message
update penstock_messages
set flags = flags - (flags & :pausing),
  due = case when worker is null then :now else due end
where id = :key
and queue = :queue
and handler = '';

-- name: remove_message
delete from penstock_messages
where id = :key
and queue = :queue
and handler = ''
returning queue, length(body);

-- name: children
select key
from penstock_runs
where parent = :key
and state in ('active', 'paused');

-- name: children_since
select penstock_runs.key
from penstock_runs
join penstock_steps
on penstock_steps.run = penstock_runs.parent
and penstock_steps.name = penstock_runs.parent_step
where penstock_runs.parent = :key
and penstock_runs.state in ('active', 'paused')
and penstock_steps.position >= :position;

-- name: restart
update penstock_runs
set state = 'active',
  reason = null,
  result = null,
  error = null,
  generation = generation + 1,
  ended_at = null,
  forget_at = null
where key = :key
and generation = :generation;

-- What children say whose steps are forgotten is not for those that take their place.
-- name: forget_children
delete from penstock_signals
where run = :key
and name in (
  select cast(:child as text) || penstock_steps.name
  from penstock_steps
  where penstock_steps.run = :key
  and penstock_steps.position >= :position
);

-- Nor are their later results, should an operator restart them.
-- name: disown_children
update penstock_runs
set parent = null,
  parent_step = null
where parent = :key
and parent_step in (
  select penstock_steps.name
  from penstock_steps
  where penstock_steps.run = :key
  and penstock_steps.position >= :position
);

-- name: forget_steps
delete from penstock_steps
where run = :key
and position >= :position;

-- name: state
select state
from penstock_runs
where key = :key;

-- name: steps
select run, position, name, kind, state, attempts, started_at, ended_at, due, result, error, traceback
from penstock_steps
where run = :key
order by position;

-- name: signals
select seq, name, payload
from penstock_signals
where run = :key
order by seq;

-- name: find
select
  penstock_runs.key, penstock_runs.workflow, penstock_runs.id,
  case
    when penstock_runs.state <> 'active' then penstock_runs.state
    when penstock_messages.worker is not null then 'running'
    when penstock_messages.due > :now then 'waiting'
    else 'queued'
  end,
  penstock_runs.reason, penstock_runs.input, penstock_runs.result, penstock_runs.error, penstock_runs.generation,
  penstock_runs.priority, penstock_runs.correlation_id, penstock_runs.parent, penstock_runs.created_at,
  penstock_runs.ended_at,
  case when penstock_messages.worker is null then penstock_messages.due end
from penstock_runs
left join penstock_messages
on penstock_messages.id = penstock_runs.key
and penstock_messages.queue = 'workflow.' || penstock_runs.workflow
and penstock_messages.handler = ''
where penstock_runs.key = :key;

-- name: listed
select
  key, workflow, id, state, reason, input, result, error, generation, priority, correlation_id, parent, created_at,
  ended_at, due
from (
  select
    penstock_runs.key, penstock_runs.workflow, penstock_runs.id,
    case
      when penstock_runs.state <> 'active' then penstock_runs.state
      when penstock_messages.worker is not null then 'running'
      when penstock_messages.due > :now then 'waiting'
      else 'queued'
    end as state,
    penstock_runs.reason, penstock_runs.input, penstock_runs.result, penstock_runs.error, penstock_runs.generation,
    penstock_runs.priority, penstock_runs.correlation_id, penstock_runs.parent, penstock_runs.created_at,
    penstock_runs.ended_at,
    case when penstock_messages.worker is null then penstock_messages.due end as due
  from penstock_runs
  left join penstock_messages
  on penstock_messages.id = penstock_runs.key
  and penstock_messages.queue = 'workflow.' || penstock_runs.workflow
  and penstock_messages.handler = ''
  where cast(:workflow as text) is null
  or penstock_runs.workflow = :workflow
) as runs
where cast(:state as text) is null
or state = :state
order by created_at desc, id
limit :limit;
