-- The audit: one row an operation, and what is kept about each kind of thing that an operator changes.

-- name: note
insert into penstock_audit (id, at, actor, origin, verb, kind, name, before, after, count)
values (:id, :at, :actor, :origin, :verb, :kind, :name, :before, :after, :count)
on conflict (id) do update
set after = case when penstock_audit.name = excluded.name then excluded.after else penstock_audit.after end,
  count = penstock_audit.count + excluded.count;

-- name: queue
select paused, parallel_tuned, rate_tuned
from penstock_queues
where name = :key
--postgres for update
;

-- name: cron
select paused
from penstock_timers
where kind = 'cron'
and name = :key
--postgres for update
;

-- name: run
select state, reason, generation
from penstock_runs
where key = :key
--postgres for update
;

-- name: controller
select state
from penstock_objects
where class = 'Controller'
and name = :key
--postgres for update
;

-- name: dead
select resolution, note, replay_count, body
from penstock_dead
where seq = :key
--postgres for update
;
