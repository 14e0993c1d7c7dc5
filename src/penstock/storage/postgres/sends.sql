-- Sends.

-- Half of what an insert of many rows costs the server, and a tenth of what it costs the client. It fails where an insert
-- would pass over a row that is there already.
-- name: send_many
copy penstock_messages (
  id, queue, priority, due, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body, flags,
  expires
)
from stdin
with (format binary);

-- name: note_seen_many
copy penstock_seen (id, queue, type, source, seen_at)
from stdin
with (format binary);

-- name: send
insert into penstock_messages (
  id, queue, priority, due, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body, flags,
  expires
)
values (
  :id, :queue, :priority, :due, :type, :source, :correlation_id, :causation_id, :hops, :depth, :sent_at, :checksum,
  :body, :flags, :expires
)
on conflict (id, queue, handler) do nothing;

-- A lone message with its counter, the number that tells whether it was committed, and one that is news to other processes:
-- one way to the server. No row comes back where the message was there already, and then nothing was done.
-- name: send_alone
with sent as (
  insert into penstock_messages (
    id, queue, priority, due, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body, flags,
    expires
  )
  values (
    :id, :queue, :priority, :due, :type, :source, :correlation_id, :causation_id, :hops, :depth, :sent_at, :checksum,
    :body, :flags, :expires
  )
  on conflict (id, queue, handler) do nothing
  returning queue
), counted as (
  insert into penstock_counters (queue, worker, sent, acked, dead, purged, expired, bytes)
  select queue, cast(:worker as bigint), 1, 0, 0, 0, 0, cast(:bytes as bigint)
  from sent
  on conflict (queue, worker) do update
  set sent = penstock_counters.sent + excluded.sent,
    bytes = penstock_counters.bytes + excluded.bytes
), noted as (
  insert into penstock_numbers (worker, number, noted_at)
  select cast(:worker as bigint), cast(:number as bigint), cast(:now as bigint)
  from sent
  on conflict (worker) do update
  set number = excluded.number,
    noted_at = excluded.noted_at
)
select nextval('penstock.penstock_tokens')
from sent;
