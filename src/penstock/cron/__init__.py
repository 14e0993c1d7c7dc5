"""Cron: tasks that run by the clock."""
