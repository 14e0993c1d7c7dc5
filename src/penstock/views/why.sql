-- Why a message is not running, and how it ended.

-- name: messages
select seq, id, handler, queue, priority, due, worker, attempts, crashes, rounds, type, sent_at, expires, last_failed_at,
  error_class, error_message, traceback, replay_of
from penstock_messages
where id = :id
order by seq
limit :most;

-- name: worker
select id, host, pid, started_at
from penstock_workers
where id = :worker;

-- name: crowd
select
  (
    select count(*)
    from (
      select 1
      from penstock_messages
      where queue = :queue
      and priority = :priority
      and worker is null
      and due <= :now
      and due <= :due
      and (due < :due or seq < :seq)
      limit :most
    ) as earlier
  ) + (
    select count(*)
    from (
      select 1
      from penstock_messages
      where queue = :queue
      and priority in (0, 1)
      and priority < :priority
      and worker is null
      and due <= :now
      limit :most
    ) as higher
  ) as ahead,
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
    select min((
      select due
      from penstock_messages
      where queue = :queue
      and priority = priorities.column1
      and worker is null
      order by due
      limit 1
    ))
    from (values (0), (1), (2)) as priorities
  ) as first_due,
  coalesce(sum(case when leased.queue = :queue then 1 else 0 end), 0) as leased,
  coalesce(sum(case when leased.crashes > 0 then 1 else 0 end), 0) as suspects
from (
  select queue, crashes
  from penstock_messages
  where worker is not null
  and due > 0
  limit :leased_max
) as leased;

-- name: ended_dead
select seq, id, queue, handler, type, reason, error_class, error_message, traceback, attempts, failed_at,
  replay_of, replay_count, replayed_at, resolved_at, resolution, note
from penstock_dead
where id = :id
order by seq desc
limit :most;

-- name: ended_processed
select queue, type, processed_at
from penstock_seen
where id = :id
and processed_at is not null
order by processed_at desc
limit :most;
