-- What a queue holds, counted from its rows.

-- name: rows
select
  (select count(*) from penstock_messages where queue = :queue and worker is null and due <= :now) as ready,
  (select count(*) from penstock_messages where queue = :queue and worker is not null) as leased,
  (select count(*) from penstock_messages where queue = :queue and worker is null and due > :now) as delayed,
  (select count(*) from penstock_dead where queue = :queue and resolution is null) as dead,
  (select coalesce(sum(sent), 0) from penstock_counters where queue = :queue) as sent,
  (select coalesce(sum(acked), 0) from penstock_counters where queue = :queue) as acked,
  (select coalesce(sum(purged), 0) from penstock_counters where queue = :queue) as purged,
  (select coalesce(sum(expired), 0) from penstock_counters where queue = :queue) as expired;

-- name: queues
select queue from penstock_messages
union
select queue from penstock_dead
union
select queue from penstock_counters
order by queue;
