-- What databases of versions 1 to 3 lack.

-- name: message_tracebacks
alter table penstock_messages add column traceback text;

-- name: dead_tracebacks
alter table penstock_dead add column traceback text;

-- name: run_tracebacks
alter table penstock_runs add column traceback text;

-- name: step_tracebacks
alter table penstock_steps add column traceback text;

-- Version 3 kept a passed trial among the saved paces.
-- name: move_trial
update penstock_objects
set class = 'TrialRecord',
  name = 'main',
  state = cast(json_extract(cast(state as text), '$.pace') as blob)
where class = 'Remembered'
and name = 'penstock.trial';
