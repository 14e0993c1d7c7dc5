"""Stage 5, by a workflow for each market: what could be built there, and why."""
