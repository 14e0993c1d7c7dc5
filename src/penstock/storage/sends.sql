-- Sends: in bulk, and one by one where an id may be there already.

-- name: note_seen
insert into penstock_seen (id, queue, type, source, seen_at)
values (:id, :queue, :type, :source, :now)
on conflict (id, queue) do nothing;

-- name: load
select
  coalesce((
    select cast(sum(sent - acked - dead - purged - expired) as bigint)
    from penstock_counters
    where queue = :queue
  ), 0),
  coalesce((
    select cast(sum(bytes) as bigint)
    from penstock_counters
    where queue = :queue
  ), 0),
  coalesce((
    select second
    from penstock_queues
    where name = :queue
  ), 0),
  coalesce((
    select second_sent
    from penstock_queues
    where name = :queue
  ), 0);

-- name: note_second
update penstock_queues
set second = :second,
  second_sent = :sent
where name = :queue;
