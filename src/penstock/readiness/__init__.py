"""Readiness: what can be said against an app before it runs."""
