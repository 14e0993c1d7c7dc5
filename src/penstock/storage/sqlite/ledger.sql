-- Group commits: the fence and the engine's rows. Users' statements run between `settle` and `send`.

-- name: next_number
update penstock_tokens
set last = last + 1
where one = 1
returning last;

-- name: note_number
update penstock_workers
set number = :number
where id = :worker;

-- name: read_number
select number
from penstock_workers
where id = :worker;

-- name: settle_done
delete from penstock_messages
where seq in carray(:seqs)
and token = :token;

-- name: settle_again
update penstock_messages
set worker = null,
  token = :number,
  due = :due,
  attempts = attempts + :charged,
  rounds = rounds + :rounds,
  first_failed_at = case when :failed then coalesce(first_failed_at, :now) else first_failed_at end,
  last_failed_at = case when :failed then :now else last_failed_at end,
  error_class = coalesce(:error_class, error_class),
  error_message = coalesce(:error_message, error_message)
where seq = :seq
and token = :token;

-- name: bury
insert into penstock_dead (
  id, handler, queue, priority, type, source, correlation_id, causation_id, hops, sent_at, checksum, body,
  attempts, crashes, reason, error_class, error_message, first_failed_at, failed_at
)
select
  id, handler, queue, priority, type, source, correlation_id, causation_id, hops, sent_at, checksum, body,
  attempts + :charged, crashes + :crashed, :reason, coalesce(:error_class, error_class),
  coalesce(:error_message, error_message), coalesce(first_failed_at, :now), :now
from penstock_messages
where seq = :seq
and token = :token;

-- name: remove
delete from penstock_messages
where seq = :seq
and token = :token;

-- name: still_held
select count(*)
from penstock_messages
where seq in carray(:seqs)
and token = :token;

-- name: held_one
select 1
from penstock_messages
where seq = :seq
and token = :token;

-- name: find_once
select result
from penstock_once
where scope = :scope
and key = :key;

-- name: save_once
insert into penstock_once (scope, key, result, saved_at)
values (:scope, :key, :result, :now);

-- name: send
insert into penstock_messages (
  id, handler, queue, priority, due, type, source, correlation_id, causation_id, hops, sent_at, checksum, body
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id, handler) do nothing;

-- name: count
insert into penstock_counters (queue, worker, sent, acked, dead)
values (:queue, :worker, :sent, :acked, :dead)
on conflict (queue, worker) do update
set sent = sent + excluded.sent,
  acked = acked + excluded.acked,
  dead = dead + excluded.dead;

-- name: paused
select name
from penstock_queues
where paused;

-- Each (queue, priority) is a probe of its own: a range over priorities would walk every delayed row.
-- Looked up and then taken, in one transaction: `returning` would copy every row once more and lose the order.
-- name: due
select
  seq, :number, id, handler, queue, attempts, crashes, rounds, type, source, correlation_id, causation_id, hops, sent_at,
  checksum, body
from penstock_messages
where queue = :queue
and priority = :priority
and worker is null
and due <= :now
order by due
limit :limit;

-- name: take
update penstock_messages
set worker = :worker,
  token = :number,
  due = :lease_end
where seq in carray(:seqs);

-- name: next_due
select due
from penstock_messages
where queue = :queue
and priority = :priority
and worker is null
order by due
limit 1;

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
