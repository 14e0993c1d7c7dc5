"""Leases short enough for a test to outlast. A lease is the wall limit and 30 s otherwise."""

from __future__ import annotations

import os

from penstock.model.queue import QueueSettings

LEASE_VARIABLE = "VICTIM_LEASE_SECONDS"


def shorten() -> None:
    """Where the variable is set, every lease of this process is so short."""
    if LEASE_VARIABLE in os.environ:
        lease_seconds = float(os.environ[LEASE_VARIABLE])
        setattr(QueueSettings, "lease_seconds", property(lambda _: lease_seconds))  # noqa: B010 (it has no setter)
