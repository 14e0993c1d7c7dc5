"""Stage 4, by cron: lays apps and keywords out in markets."""
