-- Dead letters, and rows that become several.

-- name: add
insert into penstock_dead (
  id, handler, queue, priority, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body,
  flags, replay_of, replay_count, attempts, crashes, reason, error_class, error_message, first_failed_at, failed_at,
  traceback
)
select
  id, handler, queue, priority, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body,
  flags, replay_of, replays, attempts + :charged, crashes + :crashed, :reason, coalesce(:error_class, error_class),
  coalesce(:error_message, error_message), coalesce(first_failed_at, :now), :now, coalesce(:traceback, traceback)
from penstock_messages
where seq = :seq
and token = :token
--postgres for update
returning
  seq, id, queue, correlation_id, hops, depth, flags, body, type, source, attempts, reason,
  error_class || ': ' || error_message;

-- name: remove
delete from penstock_messages
where seq = :seq
and token = :token;

-- name: give_notice
insert into penstock_messages (
  id, queue, priority, due, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body, flags
)
select
  :id, name || '-dlq', 1, :now, :type, 'penstock', :correlation_id, :causation_id, :hops, :depth, :now,
  :checksum, :body, :flags
from penstock_queues
where name = :queue
and watched = 1
on conflict (id, queue, handler) do nothing;

-- name: letter
select id, queue, type, source, replay_of, replay_count, body
from penstock_dead
where seq = :letter
and resolution is null
--postgres for update
;

-- A replay starts a new chain without an attempt or a crash, and does not expire: an operator asked for it.
-- name: replay
insert into penstock_messages (
  id, handler, queue, priority, due, type, source, correlation_id, causation_id, hops, depth, sent_at, checksum, body,
  flags, replay_of, replays
)
select
  :id, handler, queue, priority, :due, type, source, correlation_id, causation_id, 0, 0, sent_at, :checksum,
  :body, (flags & :kept) | :flags, :replay_of, replay_count + 1
from penstock_dead
where seq = :letter
and resolution is null;

-- name: resolve
update penstock_dead
set resolution = :resolution,
  note = :note,
  resolved_at = :now,
  replayed_at = case when cast(:note as text) is null then :now else replayed_at end,
  replay_count = replay_count + case when cast(:note as text) is null then 1 else 0 end
where seq = :letter
and resolution is null;

-- name: edit
update penstock_dead
set body = :body,
  checksum = :checksum,
  edited_at = :now
where seq = :letter
and resolution is null;

-- name: splitting
select queue, length(body)
from penstock_messages
where seq = :seq
and token = :token
--postgres for update
;

-- name: split
insert into penstock_messages (
  id, handler, queue, priority, due, attempts, crashes, type, source, correlation_id, causation_id, hops, depth,
  sent_at, checksum, body, flags, expires, replay_of, replays
)
select
  id, :handler, queue, priority, :now, attempts, crashes, type, source, correlation_id, causation_id, hops, depth,
  sent_at, checksum, body, flags, expires, replay_of, replays
from penstock_messages
where seq = :seq
and token = :token
on conflict (id, queue, handler) do nothing;
