-- Queues by their names.

-- name: queues
select name
from penstock_queues
order by name
limit 10000;

-- name: pause
update penstock_queues
set paused = :paused
where name = :queue;

-- Under another rate the next start need not wait for what the old one said; under the same it must.
-- name: tune
update penstock_queues
set parallel_tuned = :parallel,
  next_start = case when coalesce(rate_tuned, rate) is not distinct from coalesce(:rate, rate) then next_start else 0 end,
  rate_tuned = :rate
where name = :queue;

-- What is under way is left to end. The rows are picked before any is removed: as a part of the `where`, PostgreSQL may
-- look for them anew for each row, pass over those it has locked itself, and remove more than were asked for.
-- name: purge
with picked as (
  select seq
  from penstock_messages
  where queue = :queue
  and priority = :priority
  and worker is null
  order by due
  limit :limit
  --postgres for update skip locked
)
delete from penstock_messages
where seq in (
  select seq
  from picked
)
returning queue, length(body);

-- One message has a row for each of its handlers: no more than a few.
-- name: purge_one
delete from penstock_messages
where id = :id
and queue = :queue
and worker is null
returning queue, length(body);

-- name: expire
with picked as (
  select seq
  from penstock_messages
  where expires is not null
  and worker is null
  and expires <= :now
  order by expires
  limit :limit
  --postgres for update skip locked
)
delete from penstock_messages
where seq in (
  select seq
  from picked
)
returning queue, length(body);

-- name: next_expiry
select expires
from penstock_messages
where expires is not null
and worker is null
order by expires
limit 1;

-- A queue whose dead letters have a handler keeps them: the handler resolves them.
-- name: expire_dead
with picked as (
  select penstock_dead.seq
  from penstock_queues
  join penstock_dead on penstock_dead.queue = penstock_queues.name
  where penstock_queues.dead_retention_seconds is not null
  and penstock_queues.watched = 0
  and penstock_dead.resolution is null
  and penstock_dead.failed_at <= :now - cast(penstock_queues.dead_retention_seconds * 1000000 as bigint)
  order by penstock_dead.failed_at
  limit :limit
  --postgres for update of penstock_dead skip locked
)
delete from penstock_dead
where seq in (
  select seq
  from picked
)
returning queue;

-- name: next_dead_expiry
select min((
  select failed_at
  from penstock_dead
  where penstock_dead.queue = penstock_queues.name
  and resolution is null
  order by failed_at
  limit 1
) + cast(dead_retention_seconds * 1000000 as bigint))
from penstock_queues
where dead_retention_seconds is not null
and watched = 0;

-- name: aging
with picked as (
  select penstock_dead.seq
  from penstock_queues
  join penstock_dead on penstock_dead.queue = penstock_queues.name
  where penstock_queues.dead_retention_seconds is not null
  and penstock_queues.watched = 0
  and penstock_dead.resolution is null
  and penstock_dead.warned_at is null
  and penstock_dead.failed_at <= :before
  limit :limit
  --postgres for update of penstock_dead skip locked
)
update penstock_dead
set warned_at = :now
where seq in (
  select seq
  from picked
)
returning queue;

-- name: leased
select
  seq, token, id, handler, queue, attempts, crashes, rounds, type, source, correlation_id, causation_id, hops, depth,
  sent_at, checksum, body, flags, replay_of, 0
from penstock_messages
where seq = :seq
and token = :token
and worker = :worker;

-- name: peek
select
  due, seq, token, id, handler, queue, attempts, crashes, rounds, type, source, correlation_id, causation_id, hops,
  depth, sent_at, checksum, body, flags, replay_of, 0
from penstock_messages
where queue = :queue
and priority = :priority
and worker is null
order by due
limit :limit;

-- name: backlog
select
  cast(coalesce(sum(sent - acked - dead - purged - expired), 0) as bigint),
  cast(coalesce(sum(bytes), 0) as bigint)
from penstock_counters
where queue = :queue;

-- name: dead
select queue, cast(sum(dead) as bigint)
from penstock_counters
group by queue
having sum(dead) > 0
limit 10000;
