-- Columns that databases of versions 1 to 3 lack.

-- name: message_tracebacks
alter table penstock_messages add column traceback text;

-- name: dead_tracebacks
alter table penstock_dead add column traceback text;

-- name: run_tracebacks
alter table penstock_runs add column traceback text;

-- name: step_tracebacks
alter table penstock_steps add column traceback text;
