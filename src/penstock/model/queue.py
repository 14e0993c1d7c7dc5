"""What a queue promises about its messages: the settings that travel with its name."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.model.errors import BadApp
from penstock.model.retry import Retry

LEASE_SLACK_SECONDS = 30.0  # on top of the wall limit: time to settle after the handler was cancelled


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Settings a queue is registered with. The reaper of a dead worker reads them from the database."""

    name: str
    parallel: int = 16
    retry: Retry = field(default_factory=Retry)
    wall_seconds: float = 900.0
    crashes_max: int = 3

    def __post_init__(self) -> None:
        if not self.name or len(self.name) > 100 or not all(c.isalnum() or c in "-_." for c in self.name):
            raise BadApp(
                f"{self.name!r} cannot name a queue. Use 1 to 100 letters, digits, '-', '_' or '.'.", name=self.name
            )
        for field_name, value, least in (
            ("parallel", self.parallel, 1),
            ("retries", self.retry.retries, 0),
            ("crashes_max", self.crashes_max, 1),
        ):
            if value < least:
                raise BadApp(f"Queue {self.name!r}: {field_name} is {value}; it must be at least {least}.")
        if self.wall_seconds <= 0:
            raise BadApp(f"Queue {self.name!r}: wall is {self.wall_seconds} s; it must be more than 0.")

    @property
    def lease_seconds(self) -> float:
        return self.wall_seconds + LEASE_SLACK_SECONDS
