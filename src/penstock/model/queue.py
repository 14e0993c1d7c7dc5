"""What a queue promises about its messages: the settings that travel with its name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from penstock.model.errors import BadApp
from penstock.model.limits import Limits, check_dedup
from penstock.model.retry import Retry

LEASE_SLACK_SECONDS = 30.0  # on top of the wall limit: time to settle after the handler was cancelled


PARALLEL_AUTOMATIC, PARALLEL_AUTOMATIC_MAX = 16, 250  # where automatic concurrency begins and ends


def is_internal(queue: str) -> bool:
    """Tell whether the engine made a queue: for cron tasks, objects, workflows, alerts or handlers of dead letters."""
    return queue.startswith(("cron.", "object.", "workflow.", "penstock.")) or queue.endswith("-dlq")


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Settings a queue is registered with. Other processes read them from the database."""

    name: str
    parallel: int | None = None  # None: as many as the backlog asks for, up to `parallel_max`
    parallel_max: int = 250
    retry: Retry = field(default_factory=Retry)
    wall_seconds: float = 900.0
    cpu_seconds: float | None = None  # that a handler may hold the processor
    crashes_max: int = 3
    batch: int = 1
    wait_seconds: float = 0.0
    rate: float | None = None  # messages that may start in a second
    messages_max: int | None = None
    bytes_max: int | None = None
    per_second_max: int | None = None  # messages that may be sent in a second
    retention_seconds: float | None = None
    dead_retention_seconds: float | None = None
    accepts: tuple[str, ...] | None = None
    alone: bool = False  # one at a time, over all workers
    watched: bool = False  # somebody handles its dead letters

    def __post_init__(self) -> None:
        if not _is_name(self.name):
            raise BadApp(
                f"{self.name!r} cannot name a queue. Use 1 to 100 letters, digits, '-', '_' or '.'.", name=self.name
            )
        for field_name, value, least in (
            ("parallel", self.parallel, 1),
            ("retries", self.retry.retries, 0),
            ("crashes_max", self.crashes_max, 1),
            ("batch", self.batch, 1),
            ("wait", self.wait_seconds, 0),
            ("messages_max", self.messages_max, 1),
            ("bytes_max", self.bytes_max, 1),
        ):
            if value is not None and not value >= least:
                raise BadApp(f"Queue {self.name!r}: {field_name} is {value}; it must be at least {least}.")
        for field_name, positive in (
            ("wall", self.wall_seconds),
            ("cpu", self.cpu_seconds),
            ("rate", self.rate),
            ("retention", self.retention_seconds),
        ):
            if positive is not None and not 0 < positive < inf:
                raise BadApp(f"Queue {self.name!r}: {field_name} is {positive}; it must be more than 0.")

    @property
    def lease_seconds(self) -> float:
        return self.wall_seconds + LEASE_SLACK_SECONDS

    @property
    def is_bounded(self) -> bool:
        """Whether a send to it can be refused for want of room."""
        return any(bound is not None for bound in (self.messages_max, self.bytes_max, self.per_second_max))

    def as_row(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "retries": self.retry.retries,
            "retry_first_seconds": self.retry.first_seconds,
            "retry_longest_seconds": self.retry.longest_seconds,
            "wall_seconds": self.wall_seconds,
            "crashes_max": self.crashes_max,
            "batch": self.batch,
            "wait_seconds": self.wait_seconds,
            "parallel": self.parallel,
            "rate": self.rate,
            "messages_max": self.messages_max,
            "bytes_max": self.bytes_max,
            "per_second_max": self.per_second_max,
            "retention_seconds": self.retention_seconds,
            "dead_retention_seconds": self.dead_retention_seconds,
            "accepts": None if self.accepts is None else " ".join(self.accepts),
            "watched": int(self.watched),
        }


def _is_name(name: object) -> bool:
    return isinstance(name, str) and 0 < len(name) <= 100 and all(c.isalnum() or c in "-_." for c in name)


def from_limits(
    limits: Limits,
    name: str,
    *,
    batch: int | None,
    wait: float | None,
    parallel: int | None,
    retries: int | None,
    jitter: bool,
    cpu: float | None,
    retention: float | None,
) -> dict[str, Any]:
    """The settings of a queue that a profile of limits decides, after checking those that it bounds."""
    for field_name, value, most in (
        ("batch", batch, limits.batch_max),
        ("wait", wait, limits.wait_seconds_max),
        ("parallel", parallel, limits.concurrency_max),
        ("retries", retries, limits.retries_max),
        ("cpu", cpu, limits.cpu_seconds_max),
        ("retention", retention, limits.retention_seconds_max),
    ):
        if value is not None and most is not None and value > most:
            raise BadApp(f"Queue {name!r}: {field_name} is {value:,}; it can be {most:,} at most.")
    kept = limits.retention_seconds if retention is None else retention
    if kept is not None and kept > limits.dedup_seconds:  # a message lives no longer than that, its delay included
        check_dedup(limits, retention_seconds=kept)
    return {
        "parallel_max": min(limits.concurrency_max, PARALLEL_AUTOMATIC_MAX),
        "retry": replace(limits.retry, retries=limits.retries if retries is None else retries, jitter=jitter),
        "cpu_seconds": limits.queue_invocation.cpu_seconds if cpu is None else cpu,
        "bytes_max": limits.backlog_bytes_max,
        "per_second_max": limits.queue_messages_per_second_max,
        "retention_seconds": kept,
        "dead_retention_seconds": limits.dead_retention_seconds,
    }
