"""What keeps an app going: the clock, the due loop, the unit of work, workers and their supervisor."""
