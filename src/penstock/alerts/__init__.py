"""Alerts: conditions that a person should know, reported once, through the sinks that the app names."""
