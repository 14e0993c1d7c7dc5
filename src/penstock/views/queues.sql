-- Queues and processes: all in one statement, and one queue as it is registered.

-- name: queue
select name, paused, retries, retry_first_seconds, retry_longest_seconds, timeout_seconds, crashes_max, batch,
  batch_wait_seconds, parallel, parallel_tuned, rate, rate_tuned, next_start, messages_max, bytes_max, per_second_max,
  retention_seconds, dead_retention_seconds, accepts, watched
from penstock_queues
where name = :name;

-- With the type null: all that serve the queue. `handler` is empty unless several handlers share a type.
-- name: serving
select penstock_workers.id, penstock_workers.host, penstock_workers.pid, penstock_workers.started_at
from penstock_workers
where penstock_workers.id in (
  select worker
  from penstock_handlers
  where queue = :queue
  and (cast(:type as text) is null or type = :type)
  and (cast(:type as text) is null or handler in (:handler, ''))
)
order by penstock_workers.id
limit :most;

-- name: queues
with named as (
  select name from penstock_queues
  union
  select queue from penstock_counters
),
counted as (
  select queue, sum(sent) as sent, sum(acked) as acked, sum(dead) as dead, sum(purged) as purged,
    sum(expired) as expired
  from penstock_counters
  group by queue
),
held as (
  select queue, count(*) as leased
  from (
    select queue
    from penstock_messages
    where worker is not null
    and due > 0
    limit :leased_max
  ) as leased
  group by queue
)
select
  named.name,
  coalesce(counted.sent, 0) as sent,
  coalesce(counted.acked, 0) as acked,
  coalesce(counted.dead, 0) as dead,
  coalesce(counted.purged, 0) as purged,
  coalesce(counted.expired, 0) as expired,
  coalesce(held.leased, 0) as leased,
  coalesce(penstock_queues.paused, 0) as paused,
  (
    select sum((
      select count(*)
      from (
        select 1
        from penstock_messages
        where queue = named.name
        and priority = priorities.column1
        and worker is null
        and due <= :now
        limit :most
      ) as due_now
    ))
    from (values (0), (1), (2)) as priorities
  ) as ready,
  (
    select sum((
      select count(*)
      from (
        select 1
        from penstock_messages
        where queue = named.name
        and priority = priorities.column1
        and worker is null
        and due > :now
        limit :most
      ) as due_later
    ))
    from (values (0), (1), (2)) as priorities
  ) as delayed,
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
left join held on held.queue = named.name
left join penstock_queues on penstock_queues.name = named.name
order by named.name
limit :queues_max;

-- name: workers
select id, host, pid, started_at, exists (
    select 1
    from penstock_handlers
    where worker = penstock_workers.id
  ) as runs_handlers
from penstock_workers
order by id
limit :most;
