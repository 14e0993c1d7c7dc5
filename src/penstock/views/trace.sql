-- A chain of messages: what waits, what is dead, and the children of its runs.

-- name: waiting
select seq, id, queue, due, worker, attempts, type, source, correlation_id, causation_id, sent_at, last_failed_at,
  error_class, error_message, traceback, replay_of
from penstock_messages
where seq in (
  select seq
  from (
    select seq, correlation_id
    from penstock_messages
    where id >= :low
    and id < :high
    limit :scanned
  ) as near
  where correlation_id = :chain
  union
  select seq
  from (
    select seq, correlation_id
    from penstock_messages
    order by seq desc
    limit :scanned
  ) as newest
  where correlation_id = :chain
)
order by seq
limit :most;

-- name: dead
select seq, id, queue, attempts, type, source, correlation_id, causation_id, failed_at, reason, error_class,
  error_message, traceback, resolution, replay_of
from penstock_dead
where seq in (
  select seq
  from (
    select seq, correlation_id
    from penstock_dead
    where id >= :low
    and id < :high
    limit :scanned
  ) as near
  where correlation_id = :chain
  union
  select seq
  from (
    select seq, correlation_id
    from penstock_dead
    order by seq desc
    limit :scanned
  ) as newest
  where correlation_id = :chain
)
order by failed_at, seq
limit :most;

-- Whether a look came to an end before the rows did.
-- name: unseen
select
  (select 1 from penstock_messages where id >= :low and id < :high limit 1 offset :scanned) as waiting_near,
  (select 1 from penstock_messages limit 1 offset :scanned) as waiting,
  (select 1 from penstock_dead where id >= :low and id < :high limit 1 offset :scanned) as dead_near,
  (select 1 from penstock_dead limit 1 offset :scanned) as dead;

-- name: chain_of
select correlation_id
from penstock_messages
where id = :id
union all
select correlation_id
from penstock_dead
where id = :id
limit 1;

-- name: children
select key
from penstock_runs
where parent = :key
order by created_at
limit :most;
