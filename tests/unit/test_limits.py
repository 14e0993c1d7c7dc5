"""Limit profiles: the platform's numbers exactly, this machine's by default, each of them overridable by name."""

from __future__ import annotations

import ast
import re
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock.model.errors import BadConfig
from penstock.model.limits import CLOUDFLARE, DAY, Limits, check_dedup, near, profile
from penstock.model.retry import Retry
from tests.stated_numbers import DOCS, in_code, number, stated

# Every row of the platform's table, field by field.
PLATFORM: dict[str, object] = {
    "queues_max": 10_000,
    "body_bytes_max": 128_000,
    "body_overhead_bytes": 100,
    "body_bytes_soft": 10_000,
    "send_messages_max": 100,
    "send_bytes_max": 256_000,
    "batch": 10,
    "batch_max": 100,
    "batch_wait_seconds": 5,
    "batch_wait_seconds_max": 60,
    "retries": 3,
    "retries_max": 100,
    "retry_first_seconds": 30,
    "retry_longest_seconds": 600,
    "queue_messages_per_second_max": 5_000,
    "backlog_bytes_max": 25_000_000_000,
    "concurrency_max": 250,
    "retention_seconds": 4 * 86_400,
    "retention_seconds_max": 14 * 86_400,
    "dead_retention_seconds": 4 * 86_400,
    "delay_seconds_max": 86_400,
    "pull_lease_seconds_max": 43_200,
    "hops_soft": 3,
    "depth_soft": 1_000,
    "loop_max": 100,
    "dedup_seconds": 15 * 86_400,
    "cpu_timeout_seconds_max": 300,
    "crons_max": 3,
    "alarm_retries": 6,
    "alarm_retry_first_seconds": 2,
    "database_bytes_max": 10_000_000_000,
    "row_bytes_max": 1_000_000,
    "batch_statements_max": 100,
    "parameters_max": 100,
    "sql_bytes_max": 100_000,
    "unit_calls_max": 1_000,
    "unit_bytes_max": 4_000_000,
    "insert_rows_max": 500,
    "history_seconds": 90 * 86_400,
    "metric_writes_per_day_max": 100_000,
    "metric_reads_per_day_max": 10_000,
}
INVOCATIONS = {"queue_invocation", "cron_invocation", "http_invocation"}

# What this machine's profile sets by itself; the rest is the platform's, or not limited.
MACHINE: dict[str, object] = {
    "retries": 3,
    "retry_first_seconds": 30,
    "retry_longest_seconds": 600,
    "alarm_retries": 6,
    "alarm_retry_first_seconds": 2,
    "batch": 1,
    "batch_wait_seconds": 0,
    "body_bytes_max": 1_000_000,
    "send_messages_max": 10_000,
    "delay_seconds_max": 366 * 86_400,
    "retention_seconds": None,
    "dead_retention_seconds": None,
    "dedup_seconds": 15 * 86_400,
    "sql_bytes_max": 1_000_000,
    "unit_calls_max": 1_000,
    "unit_bytes_max": 4_000_000,
}


@pytest.mark.spec(
    "A15-01",
    "A15-02",
    "A15-03",
    "A15-04",
    "A15-05",
    "A15-06",
    "A15-08",
    "A15-09",
    "A15-10",
    "A15-11",
    "A15-13",
    "A15-15",
    "A15-18",
    "A15-20",
    "A15-22",
)
def test_the_cloudflare_profile_has_the_platforms_numbers_and_no_other() -> None:
    limits = msgspec.structs.asdict(profile("cloudflare"))

    assert {name: value for name, value in limits.items() if name not in INVOCATIONS} == PLATFORM


def test_the_local_profile_is_the_default_and_only_protects_the_machine() -> None:
    limits = msgspec.structs.asdict(profile("local"))

    assert profile("local") == Limits()
    assert {name: limits[name] for name in MACHINE} == MACHINE
    assert {getattr(profile("local"), name).timeout_seconds for name in INVOCATIONS} == {900}


@pytest.mark.spec("G7-02", "A15-07")
@pytest.mark.parametrize(
    "name, kind, wall, cpu",
    [
        ("cloudflare", "queue", 900, 30),
        ("cloudflare", "cron", 30, 30),
        ("cloudflare", "http", 30, 30),
        ("cloudflare-free", "queue", 900, 30),
        ("cloudflare-free", "cron", 30, 0.010),
        ("cloudflare-free", "http", 30, 0.010),
        ("cloudflare-bundled", "http", 30, 0.050),
        ("local", "http", 900, None),
    ],
)
def test_each_kind_of_handler_has_limits_of_its_own(name: str, kind: str, wall: float, cpu: float | None) -> None:
    allowed = getattr(profile(name), f"{kind}_invocation")

    assert (allowed.timeout_seconds, allowed.cpu_timeout_seconds) == (wall, cpu)


@pytest.mark.spec("A15-09")
def test_the_free_plan_keeps_messages_for_a_day() -> None:
    assert profile("cloudflare-free").retention_seconds_max == DAY


@pytest.mark.spec("G7-08")
def test_every_number_can_be_overridden_and_leaves_the_profile_as_it_was() -> None:
    changed = profile("cloudflare", crons_max=5, batch_wait_seconds=2, database_bytes_max=None)

    assert (changed.crons_max, changed.batch_wait_seconds, changed.database_bytes_max) == (5, 2.0, None)
    assert profile("cloudflare").crons_max == 3
    for name in PLATFORM:
        value = getattr(CLOUDFLARE, name)
        assert getattr(profile("cloudflare", **{name: value}), name) == value


@pytest.mark.spec("G7-02")
def test_what_a_handler_may_use_can_be_overridden_from_a_file() -> None:
    changed = profile("cloudflare", cron_invocation={"timeout_seconds": 60})

    assert changed.cron_invocation.timeout_seconds == 60
    assert changed.http_invocation.timeout_seconds == 30


@pytest.mark.parametrize(
    "name, overrides, message",
    [
        ("cloudfare", {}, "no limit profile 'cloudfare'. Did you mean .*cloudflare"),
        ("zzz", {}, "There are: cloudflare, .*local"),
        ("local", {"batchmax": 5}, "no limit 'batchmax'. Did you mean .*batch_max"),
        ("local", {"retries": -1}, "retries cannot be -1"),
        ("local", {"retries": "3"}, "retries cannot be '3'"),
        ("local", {"retries": True}, "retries cannot be True"),
        ("local", {"batch": 0}, "batch cannot be 0"),
        ("local", {"body_bytes_max": 1.5}, "body_bytes_max cannot be 1.5"),
        ("local", {"queues_max": None}, "queues_max cannot be None"),
        ("local", {"batch_wait_seconds": float("inf")}, "batch_wait_seconds cannot be inf"),
        ("local", {"batch_wait_seconds": float("nan")}, "batch_wait_seconds cannot be nan"),
        ("local", {"http_invocation": {"wal_seconds": 1}}, "http_invocation cannot be"),
        ("cloudflare", {"batch": 101}, "batch is 101 and batch_max is 100"),
        ("cloudflare", {"batch_wait_seconds_max": 4}, "batch_wait_seconds is 5.0 and batch_wait_seconds_max is 4"),
        ("cloudflare", {"retention_seconds": 15 * DAY}, "retention_seconds is"),
    ],
)
def test_a_wrong_name_or_number_is_refused_by_name(name: str, overrides: dict[str, object], message: str) -> None:
    with pytest.raises(BadConfig, match=message) as refused:
        profile(name, **overrides)

    assert refused.value.facts["field"] in {"profile", *overrides, "batch_wait_seconds"}


@pytest.mark.spec("A15-19")
def test_a_failed_message_waits_30_seconds_doubling_up_to_600() -> None:
    assert [CLOUDFLARE.retry.delay_seconds(attempt) for attempt in range(1, 8)] == [30, 60, 120, 240, 480, 600, 600]


@pytest.mark.spec("A15-14")
def test_a_failed_alarm_is_tried_six_more_times_from_two_seconds_on() -> None:
    retry = CLOUDFLARE.alarm_retry

    assert [retry.delay_seconds(attempt) for attempt in range(1, 7)] == [2, 4, 8, 16, 32, 64]
    assert (retry.exhausted(6), retry.exhausted(7)) == (False, True)


@pytest.mark.spec("A15-21")
def test_dedup_records_may_not_go_before_a_message_can_still_arrive() -> None:
    with pytest.raises(BadConfig, match="dedup_seconds is 604800"):
        profile("cloudflare", dedup_seconds=7 * DAY, retention_seconds=14 * DAY)

    assert profile("cloudflare", dedup_seconds=7 * DAY).dedup_seconds == 7 * DAY  # the default retention is 4 days
    check_dedup(CLOUDFLARE, retention_seconds=14 * DAY)


def test_code_reads_every_limit() -> None:
    """A setting that no code reads is a promise that no code keeps. The constant `LOCAL` is no setting."""
    source = Path(penstock.__file__).parent
    read = {
        node.attr
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
        if not (isinstance(node.value, ast.Name) and node.value.id == "LOCAL")
    }

    assert [name for name in Limits.__struct_fields__ if name not in read] == []


# -- docs/operate/limits.md -----------------------------------------------------------------------------------

PAGE = DOCS / "operate/limits.md"
ROW = re.compile(r"^\| `([\w.]+)` \| ([^|]*) \| ([^|]*) \|", re.MULTILINE)


def flat(limits: Limits) -> dict[str, object]:
    numbers: dict[str, object] = {}
    for name, value in msgspec.structs.asdict(limits).items():
        if isinstance(value, msgspec.Struct):
            numbers |= {f"{name}.{each}": number for each, number in msgspec.structs.asdict(value).items()}
        else:
            numbers[name] = value
    return numbers


def test_a_retry_waits_as_a_queue_does_unless_it_says_otherwise() -> None:
    usual, drawn = Retry(), Retry(jitter=True)

    assert [usual.delay_seconds(attempt) for attempt in range(1, 8)] == [30, 60, 120, 240, 480, 600, 600]
    assert [usual.exhausted(attempt) for attempt in range(1, 6)] == [False, False, False, True, True]
    assert [each.delay_seconds(2, share=0.5) for each in (usual, drawn)] == [60, 30]
    assert Retry(99, first=timedelta(minutes=1), longest=timedelta(days=1)).delay_seconds(99) == 86_400


def test_a_misspelt_name_comes_with_those_that_resemble_it_or_else_with_the_first_twenty() -> None:
    many = [f"queue-{number:02d}" for number in range(21)]

    assert near("ordres", ["photos", "orders", "order"]) == "Did you mean orders, order?"
    assert near("x", many[:20]) == f"There are: {', '.join(many[:20])}."
    assert near("x", many) == f"There are: {', '.join(many[:20])} and 1 more."
    assert near("x", []) == "There are none yet."


@pytest.mark.parametrize("name, column", [("local", 1), ("cloudflare", 2)])
def test_the_page_of_limits_has_every_limit_with_its_number(name: str, column: int) -> None:
    shown = {row[0]: number(row[column].strip()) for row in ROW.findall(PAGE.read_text("utf-8"))}

    assert shown == flat(profile(name))


def test_the_page_of_limits_has_the_numbers_of_the_code_for_what_is_fixed() -> None:
    shown = stated("operate/limits.md")

    assert len(shown) >= 35
    assert shown == in_code(shown, "penstock")
