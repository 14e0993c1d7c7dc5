"""The limiter against small simulated services: how soon it is near the limit, and how few are refused on the way."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from random import Random

import pytest

from bench.pace import BAN_P1_LEAST, tried
from bench.pace_bans import BANS, Ban
from bench.pace_services import KINDS
from bench.pace_strangers import STRANGERS
from penstock.control.limiter import Limiter
from penstock.control.outcome import Outcome
from tests.extent import sampled
from tests.unit.limited_services import DOWN, Answer, Service, at_once, banning, bucket, down, window

SOON = 300.0
ENOUGH = 0.8


@dataclass
class Run:
    done: list[float] = field(default_factory=list)  # when those were sent that were done
    refused: int = 0
    requests: int = 0

    def rate(self, since: float, until: float) -> float:
        return sum(since <= at < until for at in self.done) / (until - since)


def run(service: Service, seconds: float) -> Run:
    limiter, found, now = Limiter(), Run(), 0.0
    under_way: list[tuple[float, int, float, Outcome]] = []
    while now < seconds:
        decision = limiter.next(now)
        if decision.start:
            found.requests += 1
            answer = service(now, found.requests)
            heapq.heappush(under_way, (now + answer.latency, limiter.started(now), now, answer.outcome))
        elif under_way and (decision.again_at is None or under_way[0][0] <= decision.again_at):
            now, ticket, at, outcome = heapq.heappop(under_way)
            limiter.finished(now, ticket, outcome, latency=now - at, item=str(ticket))
            found.refused += outcome is Outcome.THROTTLED
            if outcome is Outcome.OK:
                found.done.append(at)
        else:
            assert decision.again_at is not None
            now = decision.again_at
    return found


LIMITS: dict[str, tuple[Service, float]] = {
    "a slow bucket": (bucket(0.3, 2), 0.3),
    "a bucket": (bucket(4, 20), 4.0),
    "a fast bucket": (bucket(60, 60), 60.0),
    "a window of a minute": (window(240, 60), 4.0),
    "five at once": (at_once(5, 0.5), 10.0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_it_reaches_80_percent_of_the_limit_within_10_minutes(name: str) -> None:
    service, limit = LIMITS[name]

    found = run(service, 3 * SOON)

    assert found.rate(2 * SOON, 3 * SOON) >= ENOUGH * limit
    assert found.refused < 20 + 0.005 * found.requests


@pytest.mark.parametrize("minutes", [5, 20, 60])
def test_it_is_back_within_5_minutes_after_an_outage(minutes: int) -> None:
    begins, ends = 600.0, 600.0 + 60 * minutes

    found = run(down(bucket(6, 20), begins, ends), ends + 2 * SOON)

    assert found.rate(ends + SOON, ends + 2 * SOON) >= ENOUGH * 6


def test_a_service_that_is_down_at_first_is_found_within_5_minutes_after() -> None:
    found = run(down(bucket(6, 20), 0.0, 1_200.0), 1_800.0)

    assert found.rate(1_500.0, 1_800.0) >= ENOUGH * 6


def test_once_it_knows_the_limit_few_are_refused() -> None:
    found = run(bucket(5, 20), 7_200.0)

    assert found.rate(600.0, 7_200.0) > 0.99 * 5
    assert found.refused / found.requests < 0.005


def test_a_limit_of_requests_at_once_is_kept_full_and_not_overrun() -> None:
    found = run(at_once(4, 0.5), 3_600.0)

    assert found.rate(600.0, 3_600.0) > 0.95 * 8
    assert found.refused < 30


def test_a_slow_service_that_fails_with_a_long_queue_is_asked_for_what_it_works_on_at_once() -> None:
    ends: list[float] = []
    failed: list[float] = []

    def ask(now: float, number: int) -> Answer:
        ends[:] = [end for end in ends if end > now]
        if len(ends) >= 4:
            failed.append(now)
            return DOWN
        ends.append((max(now, ends[-2]) if len(ends) >= 2 else now) + 3.0)
        return Answer(Outcome.OK, ends[-1] - now)

    found = run(ask, 3_600.0)

    assert found.rate(600.0, 3_600.0) > 0.9 * 2 / 3.0
    assert len(failed) <= 8


DRAWS = {draw.__name__: draw for draw in [*KINDS, *STRANGERS, *BANS]}
BANNING = [("BucketBan", 206), ("WindowBan", 221), ("ChangingBan", 203), ("SharedBan", 247), ("SlowBan", 239)]


@sampled("kind, seed", BANNING, every=2)
def test_services_that_ban_give_it_80_percent_and_never_ban_it(kind: str, seed: int) -> None:
    trial = tried(DRAWS[kind], seed)

    assert trial.bans == 0
    assert 100 * trial.share >= BAN_P1_LEAST
    assert trial.given_up_good == 0


def test_a_service_that_bans_after_two_refusals_in_half_an_hour_does_not_ban_it() -> None:
    service = banning(bucket(3, 10), 2, 3_600.0, within=1_800.0)

    found = run(service, 6 * 3_600.0)

    assert found.rate(3_600.0, 6 * 3_600.0) > 0.8 * 3
    assert found.refused <= 40


def test_a_sliding_window_that_the_search_used_up_is_not_used_up_by_a_burst_again() -> None:
    assert tried(DRAWS["SlidingWindow"], 20_000).share > 0.85


def test_the_bench_draws_bans_over_the_whole_range_and_never_bans_half_the_limit_of_a_bucket() -> None:
    drawn = [draw(Random(seed)) for seed, draw in enumerate(BANS * 30)]
    services = [service for service in drawn if isinstance(service, Ban)]

    assert {service.refusals_most for service in services} >= set(range(3, 40))
    assert min(service.within for service in services) < 60
    assert max(service.within for service in services) > 1_200
    assert not any(service.bans_half() for service in services if not service.is_changing and service.best() < 5_000)


def test_a_daily_quota_costs_no_good_item() -> None:
    assert tried(DRAWS["DailyQuota"], 1).given_up_good == 0


def test_the_bench_draws_at_least_four_kinds_that_are_not_of_the_usual_ones() -> None:
    usual, strange = {draw.__name__ for draw in KINDS}, {draw.__name__ for draw in STRANGERS}

    assert len(usual) >= 11
    assert len(strange - usual) >= 4
