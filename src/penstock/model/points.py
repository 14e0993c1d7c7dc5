"""Words of data points that more than one part of the engine says."""

from __future__ import annotations


def idle_phase(task: str) -> str:
    """How far a run of a cron task came that found nothing to do."""
    return f"{task}_idle"
