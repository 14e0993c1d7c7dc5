-- Runs and their steps in bulk, as messages are sent.

-- name: create_many
copy penstock_runs (
  key, workflow, id, state, input, priority, correlation_id, parent, parent_step, created_at
)
from stdin
with (format binary);

-- name: add_step_many
copy penstock_steps (
  run, position, name, kind, state, attempts, started_at, ended_at, due, result, error, traceback
)
from stdin
with (format binary);
