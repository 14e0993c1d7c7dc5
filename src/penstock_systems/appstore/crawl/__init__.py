"""Stage 1, by cron: finds apps through charts and searches."""
