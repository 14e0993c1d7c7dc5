"""Data points, as a metrics store takes them: words to group by, numbers to add up, and what they are filed under."""

from __future__ import annotations

from typing import NamedTuple


class DataPoint(NamedTuple):
    """The words of a cron task are the service, what triggered it, and its phase."""

    blobs: tuple[str, ...]
    doubles: tuple[float, ...]
    indexes: tuple[str, ...]


def idle_phase(task: str) -> str:
    return f"{task}_idle"


def idle_point(service: str, task: str) -> DataPoint:
    """A run that found nothing to do, in the shape of one that did something: four numbers."""
    return DataPoint((service, "cron", idle_phase(task)), (0.0,) * 4, (service,))
