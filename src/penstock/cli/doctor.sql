-- What `penstock doctor` asks a database.

-- name: newest
select max(at) as at
from (
  select max(started_at) as at from penstock_workers
  union all
  select max(at) from penstock_sizes
  union all
  select cast(value as bigint) from penstock_facts where name = 'seen_at'
  union all
  select sent_at from (select sent_at from penstock_messages order by seq desc limit 1) as newest
) as times;

-- name: server
select
  current_setting('server_version') as version,
  current_setting('fsync') as fsync,
  cast(current_setting('max_connections') as bigint) as most,
  (select count(*) from pg_stat_activity where backend_type = 'client backend') as used,
  (
    select cast(max(extract(epoch from clock_timestamp() - xact_start)) as double precision)
    from pg_stat_activity
    where pid <> pg_backend_pid()
    and backend_type = 'client backend'
  ) as oldest;

-- No message vanishes: what the counters say is waiting or dead is what there is.
-- name: unbalanced
select queue
from (
  select queue, sent - acked - dead - purged - expired as waiting, dead from penstock_counters
  union all
  select queue, -1, 0 from penstock_messages
  union all
  select queue, 0, -1 from penstock_dead where resolution is null
) as entries
group by queue
having sum(waiting) <> 0 or sum(dead) <> 0
limit 100;
