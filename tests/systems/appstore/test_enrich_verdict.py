"""What becomes of an app, for every pair of answers that its page and its look-up can give."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock_systems.appstore import moments
from penstock_systems.appstore.enrich.parts import Known, Lack, Part, Parts
from penstock_systems.appstore.enrich.verdict import ATTEMPTS_MAX, RETRY_SECONDS, WISHED, Verdict, is_refresh, judged
from penstock_systems.appstore.settings import Refresh
from tests.systems.appstore.enriching import DOWN, GONE, REFUSED, STRANGE, found, page

pytestmark = pytest.mark.slow("postgres")
NOW = "2026-01-01 00:00:00"
REFRESH = Refresh()
HOURS = 3_600
DAYS = 86_400


def part(answer: Any) -> Part[Any]:
    return Part(error=answer) if isinstance(answer, Exception) else Part(answer)


def judge(pages: Any, lookup: Any, *, ratings: Any = None, attempts: int = 0) -> Verdict:
    parts = Parts(part(lookup), part(pages), part(ratings), part(()))
    return judged(parts, Known(7, enrich_attempts=attempts), NOW, REFRESH)


def seconds(verdict: Verdict) -> float:
    return moments.days_between(NOW, verdict.next_enrich_at) * DAYS


@pytest.mark.spec("B3-05", "B3-06", "B3-07", "G2-23", "G5-13")
@pytest.mark.parametrize(
    "pages, lookup, source, attempts, wait, told",
    [
        # All that could be had.
        (page(), found(), "scraper", 0, 30 * DAYS, None),
        (page(), None, "scraper", 0, 30 * DAYS, None),
        (GONE, found(), "itunes", 0, 14 * DAYS, None),
        # What is missing may still come, and is fetched soon.
        (page(), REFUSED, "scraper", 0, 120, None),
        (page(), DOWN, "scraper", 1, 300, None),
        (REFUSED, found(), "itunes", 0, 120, REFUSED),
        (DOWN, found(), "itunes", 1, 300, DOWN),
        (STRANGE, found(), "itunes", 1, 300, None),
        # Nothing was learnt: it waits as it is.
        (REFUSED, None, None, 0, 120, REFUSED),
        (REFUSED, REFUSED, None, 0, 120, REFUSED),
        (REFUSED, DOWN, None, 1, 300, REFUSED),
        (DOWN, None, None, 1, 300, DOWN),
        (DOWN, DOWN, None, 1, 300, DOWN),
        (TimeoutError(), DOWN, None, 1, 300, TimeoutError),
        (STRANGE, DOWN, None, 1, 300, None),
        # Nothing can come.
        (GONE, None, "failed", 0, 90 * DAYS, GONE),
        (GONE, REFUSED, "failed", 0, 90 * DAYS, GONE),
        (GONE, DOWN, "failed", 0, 90 * DAYS, GONE),
        (STRANGE, None, "failed", 0, 90 * DAYS, STRANGE),
        (STRANGE, STRANGE, "failed", 0, 90 * DAYS, STRANGE),
        (ps.Refused("451"), None, "failed", 0, 90 * DAYS, ps.Refused),
    ],
)
def test_what_succeeded_is_kept_and_what_may_come_is_fetched_soon(
    pages: Any, lookup: Any, source: str | None, attempts: int, wait: float, told: Any
) -> None:
    verdict = judge(pages, lookup)

    assert (verdict.source, verdict.attempts, seconds(verdict)) == (source, attempts, wait)
    assert verdict.told is told or (isinstance(told, type) and isinstance(verdict.told, told))
    assert verdict.is_enriched == (source in ("scraper", "itunes"))
    missing = [answer for answer in (pages, lookup) if isinstance(answer, Exception)]
    assert bool(verdict.error) == bool(missing)


@pytest.mark.spec("A6-26", "B3-07")
def test_a_failing_app_is_tried_five_times_ever_more_rarely_and_then_rests() -> None:
    waits, attempts = [], 0
    for _ in range(ATTEMPTS_MAX):
        verdict = judge(DOWN, DOWN, attempts=attempts)
        waits.append((verdict.source, seconds(verdict)))
        attempts = verdict.attempts
    assert waits == [*((None, float(wait)) for wait in RETRY_SECONDS), ("failed", 90.0 * DAYS)]
    assert attempts == 0


def test_an_app_whose_page_never_comes_keeps_what_its_look_up_said() -> None:
    verdict = judge(DOWN, found(), attempts=4)
    assert (verdict.source, verdict.attempts, seconds(verdict)) == ("itunes", 0, 14 * DAYS)


@pytest.mark.spec("A6-26")
def test_a_refusal_charges_nothing_and_wipes_out_nothing() -> None:
    verdict = judge(REFUSED, None, attempts=4)
    assert (verdict.source, verdict.attempts) == (None, 4)


@pytest.mark.parametrize("asked, wait", [(None, 120), (5, 120), (600, 600), (10**9, DAYS), (float("nan"), 120)])
def test_a_refused_app_waits_as_long_as_it_was_asked_to_within_a_day(asked: float | None, wait: float) -> None:
    assert seconds(judge(ps.Throttled("403", retry_after=asked), None)) == wait


@pytest.mark.spec("B3-06")
def test_refused_ratings_cost_the_app_nothing_and_are_reported() -> None:
    verdict = judge(page(), found(), ratings=REFUSED)
    assert (verdict.source, seconds(verdict), verdict.told) == ("scraper", 30 * DAYS, REFUSED)
    assert judge(page(), found(), ratings=DOWN).told is None


def test_a_part_is_judged_by_the_kind_of_its_error_and_never_by_its_words() -> None:
    assert part(ps.Unparsable("track 403500 was answered with 429")).lack is Lack.UNREADABLE
    assert part(ps.Unavailable("404")).lack is Lack.UNAVAILABLE
    assert part(KeyError("ours")).lack is Lack.UNAVAILABLE


def test_the_words_about_a_failure_are_bounded() -> None:
    assert len(judge(ps.Unavailable("x" * 9_000), ps.Unavailable("y" * 9_000)).error or "") <= 300


@pytest.mark.spec("B3-08", "A9-04", "G2-34")
@pytest.mark.parametrize(
    "enriched_at, attempts, priority, expected",
    [
        (None, 0, 0, True),
        (None, 0, WISHED, True),
        (None, 1, 0, False),
        (None, 2, WISHED, False),
        ("2025-12-01 00:00:00", 0, 0, True),
        ("2025-12-01 00:00:00", 1, 0, False),
        ("2025-12-31 12:00:00", 0, 0, False),
        ("2025-12-31 12:00:00", 0, WISHED + 3, True),
        ("2025-12-31 12:00:00", 2, WISHED, True),
    ],
)
def test_a_refresh_wants_a_new_page_and_a_retry_takes_the_one_there_is(
    enriched_at: str | None, attempts: int, priority: int, expected: bool
) -> None:
    known = Known(7, enriched_at=enriched_at, enrich_attempts=attempts, enrich_priority=priority)
    assert is_refresh(known, "2025-12-31 00:00:00") is expected
