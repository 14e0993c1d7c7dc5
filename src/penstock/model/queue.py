"""What a queue promises about its messages: the settings that travel with its name."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple

import msgspec

from penstock.model.errors import BadApp
from penstock.model.limits import Limits, check_dedup
from penstock.model.retry import Retry, retry_of
from penstock.model.times import in_seconds

LEASE_SLACK_SECONDS = 30.0  # on top of the timeout: time to settle after the handler was cancelled


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
    reason: str = ""  # why `parallel` is fixed
    retry: Retry = field(default_factory=Retry)
    timeout_seconds: float = 900.0
    cpu_timeout_seconds: float | None = None  # that a handler may hold the processor
    crashes_max: int = 3
    batch: int = 1
    batch_wait_seconds: float = 0.0
    rate: float | None = None  # messages that may start in a second
    messages_max: int | None = None
    bytes_max: int | None = None
    per_second_max: int | None = None  # messages that may be sent in a second
    retention_seconds: float | None = None
    dead_retention_seconds: float | None = None
    accepts: tuple[str, ...] | None = None
    alone: bool = False  # one at a time, over all workers
    watched: bool = False  # its dead letters have a handler

    def __post_init__(self) -> None:
        if not _is_name(self.name):
            raise BadApp(
                f"{self.name!r} is not a queue name. Use 1 to 100 letters, digits, '-', '_' or '.'.", name=self.name
            )
        for field_name, value, least in (
            ("parallel", self.parallel, 1),
            ("retries", self.retry.retries, 0),
            ("crashes_max", self.crashes_max, 1),
            ("batch", self.batch, 1),
            ("batch_wait", self.batch_wait_seconds, 0),
            ("messages_max", self.messages_max, 1),
            ("bytes_max", self.bytes_max, 1),
        ):
            if value is not None and not value >= least:
                raise BadApp(f"Queue {self.name!r}: {field_name} is {value}; it must be at least {least}.")
        for field_name, positive in (
            ("timeout", self.timeout_seconds),
            ("cpu_timeout", self.cpu_timeout_seconds),
            ("rate", self.rate),
            ("retention", self.retention_seconds),
        ):
            if positive is not None and not 0 < positive < inf:
                raise BadApp(f"Queue {self.name!r}: {field_name} is {positive}; it must be more than 0.")

    @property
    def lease_seconds(self) -> float:
        return self.timeout_seconds + LEASE_SLACK_SECONDS

    @property
    def is_bounded(self) -> bool:
        """Whether a send to it can be refused for want of room."""
        return any(bound is not None for bound in (self.messages_max, self.bytes_max, self.per_second_max))

    def as_row(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "retries": self.retry.retries,
            "retry_first_seconds": in_seconds(self.retry.first),
            "retry_longest_seconds": in_seconds(self.retry.longest),
            "timeout_seconds": self.timeout_seconds,
            "crashes_max": self.crashes_max,
            "batch": self.batch,
            "batch_wait_seconds": self.batch_wait_seconds,
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


def declared(
    limits: Limits, name: str, *, preset: str | None, retries: int | Retry | None, jitter: bool, **given: Any
) -> QueueSettings:
    """Return the settings of a queue: what is given, then what its preset says, then what the limits say."""
    retry, kept = retry_of(limits.retry, retries), {key: value for key, value in given.items() if value is not None}
    given = {key: in_seconds(value) if key.endswith("_seconds") else value for key, value in kept.items()}
    for field_name, value, most in (
        ("batch", given.get("batch"), limits.batch_max),
        ("batch_wait", given.get("batch_wait_seconds"), limits.batch_wait_seconds_max),
        ("parallel", given.get("parallel"), limits.concurrency_max),
        ("retries", retry.retries, limits.retries_max),
        ("cpu_timeout", given.get("cpu_timeout_seconds"), limits.cpu_timeout_seconds_max),
        ("retention", given.get("retention_seconds"), limits.retention_seconds_max),
    ):
        if value is not None and most is not None and value > most:
            raise BadApp(f"Queue {name!r}: {field_name} is {value:,}; it can be {most:,} at most.")
    usual = {
        "batch": limits.batch,
        "batch_wait_seconds": limits.batch_wait_seconds,
        "retention_seconds": limits.retention_seconds,
        "parallel_max": min(limits.concurrency_max, PARALLEL_AUTOMATIC_MAX),
        "retry": replace(retry, jitter=retry.jitter or jitter),
        "bytes_max": limits.backlog_bytes_max,
        "per_second_max": limits.queue_messages_per_second_max,
        "dead_retention_seconds": limits.dead_retention_seconds,
    }
    named = {} if preset is None else preset_of(preset)._asdict() | {"reason": f"the preset {preset!r}"}
    settings = QueueSettings(name, **{**usual, **msgspec.structs.asdict(limits.queue_invocation), **named, **given})
    longest = settings.retention_seconds
    if (
        longest is not None and longest > limits.dedup_seconds
    ):  # a message lives no longer than that, its delay included
        check_dedup(limits, retention_seconds=longest)
    return settings


# -- named settings for queues whose kind of work is well known ---------------------------------------------


class Preset(NamedTuple):
    """`parallel` None: as many as the backlog asks for."""

    batch: int
    batch_wait_seconds: float
    parallel: int | None
    rate: float | None = None


PRESETS = {
    "research": Preset(5, 10.0, None),
    "publish": Preset(10, 5.0, None),
    "events": Preset(10, 5.0, None),
    "bulk-import": Preset(100, 30.0, None),
    "rate-limited-api": Preset(1, 0.0, 1),
    "search-api": Preset(1, 0.0, 1, rate=5.0),
    "dead-letters": Preset(10, 60.0, 1),
}


def preset_of(name: str) -> Preset:
    if name not in PRESETS:
        raise BadApp(f"There is no preset {name!r}. There are: {', '.join(PRESETS)}.", preset=name)
    return PRESETS[name]
