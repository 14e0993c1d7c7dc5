-- From counters alone: a client that asks every few seconds must not make the database count its messages.

-- name: queues
select count(*) as count, coalesce(sum(paused), 0) as paused
from penstock_queues
limit 1;

-- name: messages
select coalesce(sum(sent - acked - dead - purged - expired), 0) as waiting, coalesce(sum(dead), 0) as dead
from penstock_counters
limit 1;

-- name: cron_tasks
select count(*) as count,
  coalesce(sum(case when due < :late then 1 else 0 end), 0) as late,
  coalesce(sum(case when 'failed' = (
    select status
    from penstock_ticks
    where schedule = penstock_timers.name
    and finished_at is not null
    order by penstock_ticks.due desc
    limit 1
  ) then 1 else 0 end), 0) as failed
from penstock_timers
where kind = 'cron'
and paused = 0
limit 1;
