"""Queues: typed messages, sent with a unit of work and run by handlers."""
