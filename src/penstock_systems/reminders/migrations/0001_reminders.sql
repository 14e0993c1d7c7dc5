-- Reminders and what became of them. Columns that end in _at hold milliseconds since 1970 in UTC; null means never.

create table notifications (
  id text primary key,
  key text unique,
  user_id text not null,
  title text not null,
  body text not null default '',
  channels text not null,
  email_to text,
  endpoint_id text,
  chat_to text,
  recurrence_rule text,
  timezone text not null default 'UTC',
  starts text not null,
  urgent bigint not null default 0,
  nag_every_ms bigint,
  nag_times bigint not null default 0,
  nag_left bigint not null default 0,
  -- The occurrence that the next fire belongs to; `extra` names a fire between two occurrences: nag or snooze.
  occurrence_at bigint not null,
  count_done bigint not null default 0,
  extra text,
  fire_seq bigint not null default 1,
  next_fire_at bigint,
  claimed_until bigint,
  claim_token text,
  error_count bigint not null default 0,
  last_error text,
  last_attempt_at bigint,
  last_fired_at bigint,
  acked_at bigint,
  snoozed_until bigint,
  dead_lettered_at bigint,
  done_at bigint,
  cancelled_at bigint,
  replay_of text,
  is_digest bigint not null default 0,
  created_at bigint not null,
  updated_at bigint not null
);

-- The queue: only rows that have a due time, in the order in which they are due.
create index notifications_due on notifications (next_fire_at, id) where next_fire_at is not null;
create index notifications_claimed on notifications (claim_token) where claim_token is not null;
create index notifications_retrying on notifications (next_fire_at, id) where error_count > 0 and next_fire_at is not null;
create index notifications_parked on notifications (dead_lettered_at, id)
  where dead_lettered_at is not null and next_fire_at is null;
create index notifications_done on notifications (done_at, id) where done_at is not null;
create index notifications_cancelled on notifications (cancelled_at) where cancelled_at is not null;
create index notifications_user on notifications (user_id, next_fire_at, id);
create index notifications_endpoint on notifications (endpoint_id) where endpoint_id is not null;

-- What became of one fire through one channel. `sending` is an intent without a result.
create table notification_deliveries (
  notification_id text not null,
  fire_seq bigint not null,
  channel text not null,
  status text not null check (status in
    ('sending', 'sent', 'failed', 'unknown', 'held', 'given_up', 'suppressed', 'missed', 'digest', 'replayed')),
  attempt bigint not null default 0,
  idempotency_key text not null,
  occurrence_at bigint not null,
  endpoint_id text,
  digest_id text,
  intent_at bigint not null,
  answered_at bigint,
  sent_at bigint,
  provider_id text,
  error text,
  primary key (notification_id, fire_seq, channel)
);

create index notification_deliveries_open on notification_deliveries (intent_at, notification_id)
  where status in ('sending', 'unknown', 'held');
create index notification_deliveries_key on notification_deliveries (idempotency_key)
  where status in ('sending', 'unknown', 'held');
create index notification_deliveries_missed on notification_deliveries (endpoint_id, occurrence_at)
  where status in ('missed', 'given_up');
create index notification_deliveries_at on notification_deliveries (intent_at);

-- A fire that was given up. A recurring reminder continues with its next occurrence; the record stays.
create table notification_dead_letters (
  notification_id text not null,
  fire_seq bigint not null,
  dead_at bigint not null,
  cause text not null,
  error text not null,
  resolved_at bigint,
  primary key (notification_id, fire_seq)
);

create index notification_dead_letters_open on notification_dead_letters (cause, dead_at) where resolved_at is null;

create table people (
  id text primary key,
  email text,
  zone text not null default 'UTC',
  quiet_from text,
  quiet_to text,
  digest_at text,
  token_epoch bigint not null default 0,
  created_at bigint not null,
  updated_at bigint not null
);

create table endpoints (
  id text primary key,
  url text not null,
  owner_id text,
  secret_ref text,
  secret_version bigint not null default 1,
  old_until bigint,
  state text not null default 'on' check (state in ('on', 'failing', 'off')),
  failing_since bigint,
  failures bigint not null default 0,
  last_error text,
  created_at bigint not null,
  updated_at bigint not null
);

create unique index endpoints_url on endpoints (url, owner_id);

create table suppressions (
  address_hash text primary key,
  reason text not null check (reason in ('bounce', 'complaint', 'unsubscribed')),
  at bigint not null
);

-- What a digest holds. The digest itself is a row of `notifications`, with the due time at which it is sent.
create table digest_items (
  digest_id text not null,
  notification_id text not null,
  fire_seq bigint not null,
  channel text not null,
  title text not null,
  body text not null,
  kept_at bigint not null,
  primary key (digest_id, notification_id, fire_seq, channel)
);

create table reminder_secrets (
  name text primary key,
  value text not null
);
