-- Worker processes and what they hold.

-- name: enrol
insert into penstock_workers (host, pid, started_at)
values (:host, :pid, :now)
returning id;

-- name: listed
select id, host, pid, started_at
from penstock_workers
order by id
limit 10000;

-- A write only if something differs: most processes find everything as they left it.
-- name: register_queue
insert into penstock_queues (
  name, retries, retry_first_seconds, retry_longest_seconds, timeout_seconds, crashes_max, batch, batch_wait_seconds,
  parallel, rate, messages_max, bytes_max, per_second_max, retention_seconds, dead_retention_seconds, accepts,
  watched
)
values (
  :name, :retries, :retry_first_seconds, :retry_longest_seconds, :timeout_seconds, :crashes_max, :batch,
  :batch_wait_seconds, :parallel, :rate, :messages_max, :bytes_max, :per_second_max, :retention_seconds,
  :dead_retention_seconds, :accepts, :watched
)
on conflict (name) do update
set retries = excluded.retries,
  retry_first_seconds = excluded.retry_first_seconds,
  retry_longest_seconds = excluded.retry_longest_seconds,
  timeout_seconds = excluded.timeout_seconds,
  crashes_max = excluded.crashes_max,
  batch = excluded.batch,
  batch_wait_seconds = excluded.batch_wait_seconds,
  parallel = excluded.parallel,
  rate = excluded.rate,
  next_start = case when penstock_queues.rate is not distinct from excluded.rate then penstock_queues.next_start else 0 end,
  messages_max = excluded.messages_max,
  bytes_max = excluded.bytes_max,
  per_second_max = excluded.per_second_max,
  retention_seconds = excluded.retention_seconds,
  dead_retention_seconds = excluded.dead_retention_seconds,
  accepts = excluded.accepts,
  watched = excluded.watched
where (
  penstock_queues.retries, penstock_queues.retry_first_seconds, penstock_queues.retry_longest_seconds,
  penstock_queues.timeout_seconds, penstock_queues.crashes_max, penstock_queues.batch, penstock_queues.batch_wait_seconds,
  penstock_queues.parallel, penstock_queues.rate, penstock_queues.messages_max, penstock_queues.bytes_max,
  penstock_queues.per_second_max, penstock_queues.retention_seconds, penstock_queues.dead_retention_seconds,
  penstock_queues.accepts, penstock_queues.watched
) is distinct from (
  excluded.retries, excluded.retry_first_seconds, excluded.retry_longest_seconds, excluded.timeout_seconds,
  excluded.crashes_max, excluded.batch, excluded.batch_wait_seconds, excluded.parallel, excluded.rate,
  excluded.messages_max, excluded.bytes_max, excluded.per_second_max, excluded.retention_seconds,
  excluded.dead_retention_seconds, excluded.accepts, excluded.watched
);

-- name: register_handler
insert into penstock_handlers (worker, queue, type, handler)
values (:worker, :queue, :type, :handler)
on conflict do nothing;

-- name: knows
select 1
from penstock_handlers
where queue = :queue
and type = :type
and handler = :handler
and worker <> :worker
limit 1;

-- name: forget_handlers
delete from penstock_handlers
where worker = :worker;

-- name: declared_queues
select name, retries, retry_first_seconds, retry_longest_seconds, timeout_seconds, crashes_max, batch, batch_wait_seconds,
  parallel, rate, messages_max, bytes_max, per_second_max, retention_seconds, dead_retention_seconds
from penstock_queues;

-- name: queue_rules
select name, crashes_max, retries, retry_first_seconds, retry_longest_seconds
from penstock_queues;

-- Leased rows are few, and their index is tiny: it is walked whole.
-- name: held
select seq, token, queue, attempts, crashes
from penstock_messages
where worker is not null
and due > 0
and worker = :worker
order by due
limit 10000
--postgres for update
;

-- A process that is stopped in the middle of its commit keeps its rows until the server ends it: no process waits for that.
-- name: lapsed
select seq, token, queue, attempts, crashes
from penstock_messages
where worker is not null
and due <= :lapsed_by
and worker = :worker
order by due
limit 10000
--postgres for update skip locked
;

-- name: keep_counts
insert into penstock_counters (queue, worker, sent, acked, dead, purged, expired, bytes)
select queue, 0, sent, acked, dead, purged, expired, bytes
from penstock_counters
where worker = :worker
on conflict (queue, worker) do update
set sent = penstock_counters.sent + excluded.sent,
  acked = penstock_counters.acked + excluded.acked,
  dead = penstock_counters.dead + excluded.dead,
  purged = penstock_counters.purged + excluded.purged,
  expired = penstock_counters.expired + excluded.expired,
  bytes = penstock_counters.bytes + excluded.bytes;

-- name: drop_counts
delete from penstock_counters
where worker = :worker;

-- name: leave
delete from penstock_workers
where id = :worker;

-- The latest time that any process is known to have had here.
-- name: note_time
insert into penstock_facts (name, value)
values ('seen_at', cast(:now as text))
on conflict (name) do update
set value = excluded.value
where cast(penstock_facts.value as bigint) < cast(excluded.value as bigint);

-- name: latest_time
select cast(value as bigint)
from penstock_facts
where name = 'seen_at';

-- A clock that was ahead has left times behind that must not be waited for. What was due by it is due now. Schedules find
-- their next fire by themselves.
-- name: sooner_messages
update penstock_messages
set due = case when due - :by > :now then due - :by else :now end
where due > :now
and (worker is null or worker = 0);

-- name: sooner_timers
update penstock_timers
set due = case when due - :by > :now then due - :by else :now end
where due > :now
and rule is null;

-- name: sooner_items
update penstock_items
set due = case when due - :by > :now then due - :by else :now end
where due > :now;

-- name: sooner_rates
update penstock_queues
set next_start = case when next_start - :by > :now then next_start - :by else :now end
where next_start > :now;

-- name: forget_sizes
delete from penstock_sizes
where at > :now;

-- name: forget_time
delete from penstock_facts
where name = 'seen_at';
