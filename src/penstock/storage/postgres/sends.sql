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
