-- What databases of older versions lack. A statement that an older version had applied fails and is skipped.

-- name: message_tracebacks
alter table penstock_messages add column traceback text;

-- name: dead_tracebacks
alter table penstock_dead add column traceback text;

-- name: run_tracebacks
alter table penstock_runs add column traceback text;

-- name: step_tracebacks
alter table penstock_steps add column traceback text;

-- Until version 6 these limits of queues had other names.
-- name: rename_queue_timeout
alter table penstock_queues rename column wall_seconds to timeout_seconds;

-- name: rename_queue_batch_wait
alter table penstock_queues rename column wait_seconds to batch_wait_seconds;

-- Version 3 kept a passed trial among the saved paces.
-- name: move_trial
update penstock_objects
set class = 'TrialRecord',
  name = 'main',
  state = cast(json_extract(cast(state as text), '$.pace') as blob)
where class = 'Remembered'
and name = 'penstock.trial';
