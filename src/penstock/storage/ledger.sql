-- Group commits: the fence and the engine's rows. Users' statements run between `settle` and `send`.

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
  crashes = crashes + :crashed,
  rounds = rounds + :rounds,
  first_failed_at = case when :failed = 1 then coalesce(first_failed_at, :now) else first_failed_at end,
  last_failed_at = case when :failed = 1 then :now else last_failed_at end,
  error_class = coalesce(:error_class, error_class),
  error_message = coalesce(:error_message, error_message),
  traceback = coalesce(:traceback, traceback)
where seq = :seq
and token = :token;

-- name: still_held
select count(*), coalesce(max(flags & :pausing), 0)
from (
  select flags
  from penstock_messages
  where seq in carray(:seqs)
  and token = :token
  --postgres for update
) as held;

-- name: to_stop
select seq
from penstock_messages
where seq in carray(:seqs)
and flags & :pausing > 0;

-- name: hold
update penstock_messages
set due = :due
where seq = :seq
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

-- name: note_processed
update penstock_seen
set processed_at = :now
where (id, queue) in (
  select id, queue
  from penstock_messages
  where seq in carray(:seqs)
)
and not exists (
  select 1
  from penstock_messages
  where penstock_messages.id = penstock_seen.id
  and penstock_messages.queue = penstock_seen.queue
  and penstock_messages.seq not in carray(:seqs)
);

-- name: count
insert into penstock_counters (queue, worker, sent, acked, dead, purged, expired, bytes)
values (:queue, :worker, :sent, :acked, :dead, :purged, :expired, :bytes)
on conflict (queue, worker) do update
set sent = penstock_counters.sent + excluded.sent,
  acked = penstock_counters.acked + excluded.acked,
  dead = penstock_counters.dead + excluded.dead,
  purged = penstock_counters.purged + excluded.purged,
  expired = penstock_counters.expired + excluded.expired,
  bytes = penstock_counters.bytes + excluded.bytes;
