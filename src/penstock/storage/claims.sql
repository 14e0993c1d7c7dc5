-- Claims: rows that may run now, and rows whose lease has ended.

-- Only queues with something to say are in this index. The row without a name tells when the first message expires, so
-- that both are one question.
-- name: rules
select name, paused, coalesce(rate_tuned, rate), parallel_tuned
from penstock_queues
where paused = 1
or rate is not null
or rate_tuned is not null
or parallel_tuned is not null
union all
select
  null,
  (
    select expires
    from penstock_messages
    where expires is not null
    and worker is null
    order by expires
    limit 1
  ),
  null,
  null;

-- name: ready
select count(*), min(due)
from (
  select due
  from penstock_messages
  where queue = :queue
  and priority = :priority
  and worker is null
  and due <= :now
  order by due
  limit :limit
) as due_now;

-- Each (queue, priority) is a probe of its own: a range over priorities would walk every delayed row.
-- name: next_due
select min(due)
from (
  select (
    select due
    from penstock_messages
    where queue = :queue
    and priority = 0
    and worker is null
    order by due
    limit 1
  ) as due
  union all
  select (
    select due
    from penstock_messages
    where queue = :queue
    and priority = 1
    and worker is null
    order by due
    limit 1
  ) as due
  union all
  select (
    select due
    from penstock_messages
    where queue = :queue
    and priority = 2
    and worker is null
    order by due
    limit 1
  ) as due
) as firsts;

-- name: next_dues
select due
from penstock_messages
where queue = :queue
and priority = :priority
and worker is null
order by due
limit :limit;

-- name: next_start
select next_start
from penstock_queues
where name = :queue;

-- name: note_start
update penstock_queues
set next_start = :start
where name = :queue;

-- name: next_lapse
select due
from penstock_messages
where worker is not null
order by due
limit 1;

-- name: lapsed
select distinct worker
from penstock_messages
where worker is not null
and due <= :now
limit 100;

-- name: find_request
select result
from penstock_once
where scope = :scope
and key = :key;

-- name: note_request
insert into penstock_once (scope, key, result, saved_at)
values (:scope, :key, :result, :now);

-- Leased rows are few, and their index is tiny: it is walked whole.
-- name: pulled
select
  seq, token, id, handler, queue, attempts, crashes, rounds, type, source, correlation_id, causation_id, hops, depth,
  sent_at, checksum, body, flags, replay_of, 0
from penstock_messages
where worker is not null
and due > 0
and worker = :worker
and token = :token
order by due
limit 1000;

-- name: is_held
select 1
from penstock_messages
where worker is not null
and due > 0
and queue = :queue
limit 1;
