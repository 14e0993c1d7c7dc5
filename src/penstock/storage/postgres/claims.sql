-- Claims.

-- Every priority is a probe of its own, and rows that another worker is about to take are skipped. A number is drawn
-- only if there is something to take and the commit has none yet. What lies below a floor is not walked over.
-- name: take
with picked as materialized (
  select found.seq, found.due, found.token, wanted.place
  from unnest(cast(:priorities as bigint[]), cast(:floors as bigint[])) with ordinality as wanted (priority, floor, place)
  cross join lateral (
    select penstock_messages.seq, penstock_messages.due, penstock_messages.token
    from penstock_messages
    where penstock_messages.queue = :queue
    and penstock_messages.priority = wanted.priority
    and penstock_messages.worker is null
    and penstock_messages.due >= wanted.floor
    and penstock_messages.due <= :now
    order by penstock_messages.due
    limit :limit
    for update skip locked
  ) as found
),
chosen as materialized (
  select seq, due, token, place
  from picked
  order by place, due
  limit :limit
),
drawn as materialized (
  select case when cast(:number as bigint) > 0 then cast(:number as bigint) else nextval('penstock.penstock_tokens') end
    as number
  where exists (select 1 from chosen)
)
update penstock_messages
set worker = :worker,
  token = drawn.number,
  due = :lease_end
from chosen, drawn
where penstock_messages.seq = chosen.seq
-- Says the same again. Without it, a table that was analyzed while it was empty is scanned whole, with all dead rows.
and penstock_messages.seq = any(array(select seq from chosen))
returning
  penstock_messages.seq, penstock_messages.token, penstock_messages.id, penstock_messages.handler,
  penstock_messages.queue, penstock_messages.attempts, penstock_messages.crashes, penstock_messages.rounds,
  penstock_messages.type, penstock_messages.source, penstock_messages.correlation_id, penstock_messages.causation_id,
  penstock_messages.hops, penstock_messages.depth, penstock_messages.sent_at, penstock_messages.checksum,
  penstock_messages.body, penstock_messages.flags, penstock_messages.replay_of, chosen.token,
  chosen.place, chosen.due;

-- name: next_due_above
select min(found.due)
from unnest(cast(:priorities as bigint[]), cast(:floors as bigint[])) as wanted (priority, floor)
cross join lateral (
  select penstock_messages.due
  from penstock_messages
  where penstock_messages.queue = :queue
  and penstock_messages.priority = wanted.priority
  and penstock_messages.worker is null
  and penstock_messages.due >= wanted.floor
  order by penstock_messages.due
  limit 1
) as found;

-- name: try_lock_queue
select pg_try_advisory_xact_lock(hashtextextended(:queue, 20551));

-- name: lock_queue
select pg_advisory_xact_lock(hashtextextended(:queue, 20551));
