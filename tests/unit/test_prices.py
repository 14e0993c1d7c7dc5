"""The cost model: a sum over rates, each of which is data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.model.prices import RATES, Rates, Usage, cost
from penstock.storage.tally import _parts

# The month that cost $21.03: what was used, and what each kind was billed at.
MONTH = Usage(
    requests=2_100_000,
    rows_read=19_630_000_000,
    rows_written=82_000_000,
    queue_operations=340_000,
    blob_bytes=1_200_000_000,
    object_seconds=45 * 3_600,
)
BILLED = {
    "requests": 0.0,
    "rows_read": 19.63,
    "rows_written": 0.82,
    "queue_operations": 0.0,
    "blob_reads": 0.0,
    "blob_writes": 0.0,
    "blob_bytes": 0.02,
    "object_requests": 0.0,
    "object_seconds": 0.56,
    "metric_writes": 0.0,
}


@pytest.mark.spec("A1-26", "G4-27")
@pytest.mark.parametrize(
    "messages, usd", [(10_000, 0.0), (100_000, 0.0), (1_000_000, 0.80), (10_000_000, 11.60), (100_000_000, 119.60)]
)
def test_a_month_of_messages_costs_what_the_table_says(messages: int, usd: float) -> None:
    usage = Usage(queue_operations=3 * _parts(1_000) * messages)

    assert cost(usage).usd == pytest.approx(usd)


@pytest.mark.spec("A1-26")
@pytest.mark.parametrize("body_bytes, operations", [(0, 3), (1, 3), (64_000, 3), (64_001, 6), (128_000, 6)])
def test_each_64_kb_of_a_message_is_written_read_and_deleted(body_bytes: int, operations: int) -> None:
    assert 3 * _parts(body_bytes) == operations


@pytest.mark.spec("A4-14", "G2-37")
def test_the_bill_of_the_source_is_reproduced_without_its_free_reads() -> None:
    bill = cost(MONTH, Rates(rows_read_free_per_day=0))

    assert {line.name: round(line.usd, 2) for line in bill.lines} == BILLED
    assert round(bill.usd, 2) == 21.03


@pytest.mark.spec("G2-37")
def test_reads_that_a_plan_includes_are_free() -> None:
    assert cost(MONTH, Rates(rows_read_included_per_month=25_000_000_000)).line("rows_read").usd == 0
    assert cost(MONTH).line("rows_read").usd == pytest.approx((19_630 - 150) * 0.001)


@pytest.mark.spec("A4-14")
@pytest.mark.parametrize(
    "usage, free, usd_per_million",
    [
        ("requests", 3_000_000, 0.30),
        ("rows_read", 150_000_000, 0.001),
        ("rows_written", 0, 0.01),
        ("queue_operations", 1_000_000, 0.40),
        ("blob_reads", 10_000_000, 0.36),
        ("blob_writes", 1_000_000, 4.50),
        ("object_requests", 0, 12.50),
        ("metric_writes", 3_000_000, 0.25),
    ],
)
def test_only_what_is_not_free_is_charged(usage: str, free: int, usd_per_million: float) -> None:
    bill = cost(Usage(**{usage: free}))
    assert bill.usd == 0
    assert {line.name: line.used for line in bill.lines if line.used} == ({usage: free} if free else {})
    line = cost(Usage(**{usage: free + 1_000_000})).line(usage)
    assert line.charged == 1_000_000
    assert line.usd == pytest.approx(usd_per_million)


def test_what_is_free_by_the_day_grows_with_the_days_and_what_is_free_by_the_month_does_not() -> None:
    usage = Usage(requests=1_100_000, queue_operations=2_000_000, blob_bytes=30_000_000_000)

    bill = cost(usage, days=1)

    assert bill.line("requests").charged == 1_000_000
    assert bill.line("queue_operations").charged == 1_000_000
    assert bill.line("blob_bytes").usd == pytest.approx(0.015)


@pytest.mark.spec("A4-14", "G7-08")
@pytest.mark.parametrize("rate", Rates.__struct_fields__)
def test_every_rate_can_be_overridden(rate: str) -> None:
    much = Usage(**dict.fromkeys(Usage.__struct_fields__, 10**11))
    default = getattr(RATES, rate)

    dearer = cost(much, replace(RATES, **{rate: default + 1})).usd - cost(much).usd

    assert dearer != 0
    assert (dearer < 0) == (rate.endswith(("free_per_day", "free_per_month", "included_per_month")))


USAGES = st.builds(Usage, **{name: st.integers(0, 10**12) for name in Usage.__struct_fields__})


@given(USAGES, USAGES)
def test_more_usage_never_costs_less(one: Usage, other: Usage) -> None:
    both = cost(one + other).usd

    assert both >= max(cost(one).usd, cost(other).usd)
    assert both == pytest.approx(sum(line.usd for line in cost(one + other).lines))
