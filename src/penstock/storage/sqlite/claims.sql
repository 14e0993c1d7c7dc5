-- Claims.

-- Each (queue, priority) is a probe of its own: a range over priorities would walk every delayed row.
-- Looked up and then taken, in one transaction: `returning` would copy every row once more and lose the order.
-- name: due
select
  seq, :number, id, handler, queue, attempts, crashes, rounds, type, source, correlation_id, causation_id, hops, depth,
  sent_at, checksum, body, flags, replay_of, token
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
