"""The embedded store: one SQLite file, opened by any number of processes on one host."""
