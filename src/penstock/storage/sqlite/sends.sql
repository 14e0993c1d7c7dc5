-- Sends.

-- name: send
insert into penstock_messages (
  id, queue, priority, due, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body, flags,
  expires
)
values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
on conflict (id, queue, handler) do nothing;
