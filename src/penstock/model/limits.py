"""Every number a platform or this machine sets, in one place: named profiles, each value of which can be overridden."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from math import isinf
from typing import Annotated, Any, get_type_hints

import msgspec

from penstock.model.errors import BadConfig
from penstock.model.loops import ROUNDS_MAX
from penstock.model.retry import Retry

# KB, MB and GB are powers of ten everywhere in Penstock.
KB, MB, GB = 1_000, 1_000_000, 1_000_000_000
MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0

Count = Annotated[int, msgspec.Meta(ge=1)]
CountFromZero = Annotated[int, msgspec.Meta(ge=0)]
Rounds = Annotated[int, msgspec.Meta(ge=2, le=ROUNDS_MAX)]
Bytes = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]


class Invocation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one run of a handler may use. The sources disagree per handler kind, so each kind has its own numbers."""

    timeout_seconds: Seconds
    cpu_timeout_seconds: Seconds | None = None


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One profile's numbers. `None` means that this profile sets no limit. The defaults are those of `local`."""

    # Queues. 10,000 keeps one claim over all queues a short statement.
    queues_max: Count = 10_000
    body_bytes_max: Bytes = 1 * MB
    body_bytes_soft: Bytes = 10 * KB  # a larger body is sent, with one warning
    body_overhead_bytes: CountFromZero = 100  # counted towards body_bytes_max
    send_messages_max: Count = 10_000
    send_bytes_max: Bytes = 4 * MB  # what a unit of work may hold
    batch: Count = 1
    batch_max: Count = 1_000  # a batch is held in memory: 1,000 bodies of 1 MB are the most a worker should risk
    batch_wait_seconds: Seconds = 0.0
    batch_wait_seconds_max: Seconds = HOUR
    retries: CountFromZero = 3
    retries_max: CountFromZero = 1_000
    retry_first_seconds: Seconds = 30.0
    retry_longest_seconds: Seconds = 600.0
    queue_messages_per_second_max: Count | None = None
    backlog_bytes_max: Bytes | None = None
    concurrency_max: Count = 1_000
    retention_seconds: Seconds | None = None  # None: a waiting message never expires
    retention_seconds_max: Seconds | None = None
    dead_retention_seconds: Seconds | None = None
    delay_seconds_max: Seconds = 366 * DAY
    pull_lease_seconds_max: Seconds = 12 * HOUR
    hops_soft: Count | None = None  # commands in a chain before a warning
    depth_soft: Count = 1_000  # messages in a chain before a warning
    loop_max: Rounds = 100  # rounds within 60 s of one payload, sent without a delay, that make a chain a loop
    # The source prunes after 7 days while a message may live 14 and be delayed for one more: 15 covers both.
    dedup_seconds: Seconds = 15 * DAY

    # Handlers, cron and alarms.
    queue_invocation: Invocation = Invocation(timeout_seconds=15 * MINUTE)
    cpu_timeout_seconds_max: Seconds | None = None  # that a queue may ask for with `cpu_timeout=`
    cron_invocation: Invocation = Invocation(timeout_seconds=15 * MINUTE)
    http_invocation: Invocation = Invocation(timeout_seconds=15 * MINUTE)
    crons_max: Count = 1_000
    alarm_retries: CountFromZero = 6
    alarm_retry_first_seconds: Seconds = 2.0

    # The user's database.
    database_bytes_max: Bytes | None = None  # the disk is the limit, and it is watched
    row_bytes_max: Bytes = 4 * MB  # what a unit of work may hold
    batch_statements_max: Count = 1_000
    parameters_max: Count = 32_766  # SQLite's own; PostgreSQL takes 65,535
    sql_bytes_max: Bytes = 1 * MB
    unit_calls_max: Count = 1_000
    unit_bytes_max: Bytes = 4 * MB
    insert_rows_max: Count = 500
    history_seconds: Seconds = 90 * DAY
    metric_writes_per_day_max: Count | None = None
    metric_reads_per_day_max: Count | None = None

    @property
    def retry(self) -> Retry:
        """The back-off of a failed message: 30, 60, 120, 240, 480 and then 600 seconds by default."""
        return Retry(self.retries, self.retry_first_seconds, self.retry_longest_seconds)

    @property
    def alarm_retry(self) -> Retry:
        """The back-off of a failed alarm: 2, 4, 8 ... seconds, no longer than the last of them."""
        longest = self.alarm_retry_first_seconds * 2.0 ** max(self.alarm_retries - 1, 0)
        return Retry(self.alarm_retries, self.alarm_retry_first_seconds, longest)


LOCAL = Limits()

CLOUDFLARE = Limits(
    queues_max=10_000,
    body_bytes_max=128 * KB,
    send_messages_max=100,
    send_bytes_max=256 * KB,
    batch=10,
    batch_max=100,
    batch_wait_seconds=5.0,
    batch_wait_seconds_max=60.0,
    retries=3,
    retries_max=100,
    queue_messages_per_second_max=5_000,
    backlog_bytes_max=25 * GB,
    concurrency_max=250,
    retention_seconds=4 * DAY,
    retention_seconds_max=14 * DAY,
    dead_retention_seconds=4 * DAY,
    delay_seconds_max=24 * HOUR,
    pull_lease_seconds_max=12 * HOUR,
    hops_soft=3,
    # 30 s is said of every handler in one source, 15 min of queue consumers in another, and 10 or 50 ms of CPU in a
    # third. The last two are older plans: they are the profiles below.
    queue_invocation=Invocation(timeout_seconds=15 * MINUTE, cpu_timeout_seconds=30.0),
    cpu_timeout_seconds_max=5 * MINUTE,
    cron_invocation=Invocation(timeout_seconds=30.0, cpu_timeout_seconds=30.0),
    http_invocation=Invocation(timeout_seconds=30.0, cpu_timeout_seconds=30.0),
    crons_max=3,
    database_bytes_max=10 * GB,
    row_bytes_max=1 * MB,
    batch_statements_max=100,
    parameters_max=100,
    sql_bytes_max=100 * KB,
    metric_writes_per_day_max=100_000,
    metric_reads_per_day_max=10_000,
)


def _with_cpu(limits: Limits, cpu_timeout_seconds: float, **changes: Any) -> Limits:
    short = Invocation(timeout_seconds=30.0, cpu_timeout_seconds=cpu_timeout_seconds)
    return msgspec.structs.replace(limits, cron_invocation=short, http_invocation=short, **changes)


PROFILES: Mapping[str, Limits] = {
    "local": LOCAL,
    "cloudflare": CLOUDFLARE,
    "cloudflare-free": _with_cpu(CLOUDFLARE, 0.010, retention_seconds=1 * DAY, retention_seconds_max=1 * DAY),
    "cloudflare-bundled": _with_cpu(CLOUDFLARE, 0.050),
}

# A default above its own maximum would be refused at the first use; it is refused here, by name.
_NOT_ABOVE = (
    ("batch", "batch_max"),
    ("batch_wait_seconds", "batch_wait_seconds_max"),
    ("retries", "retries_max"),
    ("retry_first_seconds", "retry_longest_seconds"),
    ("retention_seconds", "retention_seconds_max"),
    ("body_bytes_soft", "body_bytes_max"),
)
_KINDS: Mapping[str, Any] = get_type_hints(Limits, include_extras=True)


def profile(name: str, /, **overrides: object) -> Limits:
    """The limits called `name`, with some of them set differently: `profile("cloudflare", crons_max=5)`."""
    if name not in PROFILES:
        raise BadConfig(f"There is no limit profile {name!r}. {near(name, PROFILES)}", field="profile", value=name)
    checked = {field: _checked(field, value) for field, value in overrides.items()}
    limits = msgspec.structs.replace(PROFILES[name], **checked)
    _check_agreement(limits)
    return limits


def _checked(field: str, value: object) -> object:
    if field not in _KINDS:
        raise BadConfig(f"There is no limit {field!r}. {near(field, _KINDS)}", field=field, value=value)
    try:
        fit = msgspec.convert(value, _KINDS[field])
    except msgspec.ValidationError as why:
        raise BadConfig(f"The limit {field} cannot be {value!r}: {why}.", field=field, value=value) from why
    if isinstance(fit, float) and isinf(fit):
        raise BadConfig(f"The limit {field} cannot be {value!r}: give a number.", field=field, value=value)
    return fit


def _check_agreement(limits: Limits) -> None:
    for low, high in _NOT_ABOVE:
        below, above = getattr(limits, low), getattr(limits, high)
        if below is not None and above is not None and below > above:
            raise BadConfig(
                f"The limit {low} is {below} and {high} is {above}. Lower the first or raise the second.",
                field=low,
                value=below,
            )
    check_dedup(limits, retention_seconds=limits.retention_seconds)


NAMES_SHOWN = 20


def check_dedup(limits: Limits, *, retention_seconds: float | None) -> None:
    """A dedup record must outlive every message that could still arrive, or a late repeat would run again."""
    if retention_seconds is None:
        return
    least = retention_seconds + limits.delay_seconds_max
    if limits.dedup_seconds < least:
        raise BadConfig(
            f"dedup_seconds is {limits.dedup_seconds:g}, and a message can still arrive after {least:g} s (retention "
            f"{retention_seconds:g} s, delay {limits.delay_seconds_max:g} s). Set dedup_seconds to {least:g} or more.",
            field="dedup_seconds",
            value=limits.dedup_seconds,
        )


def near(word: str, known: Iterable[str]) -> str:
    """Return the known names that resemble a misspelt one, or else all of them, as a sentence."""
    names = sorted(known)
    alike = difflib.get_close_matches(word, names, n=3, cutoff=0.6)
    if alike:
        return f"Did you mean {', '.join(alike)}?"
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return f"There are: {', '.join(names[:NAMES_SHOWN])}{more}." if names else "There are none yet."
