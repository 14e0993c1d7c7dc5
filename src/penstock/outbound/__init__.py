"""Calls to the outside: one client with rules for where it may go, and bounds on what may come back."""
