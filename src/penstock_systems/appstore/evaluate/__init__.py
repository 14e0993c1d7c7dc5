"""Stage 3, by events: agents that score apps, keywords and markets."""
