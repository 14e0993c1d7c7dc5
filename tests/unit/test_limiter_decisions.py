"""Every decision of the limiter against small services, compared with the recorded ones: a change of its rules shows here.

After an intended change, `python -m tests.unit.test_limiter_decisions` records the decisions anew; the difference of
`limiter_decisions.json` is part of the review.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.control.limiter import Limiter
from penstock.control.outcome import Outcome
from tests.stated_numbers import in_code, stated
from tests.unit.limited_services import (
    DOWN,
    HOUR,
    REFUSED,
    Answer,
    Service,
    at_once,
    banning,
    bucket,
    down,
    every,
    window,
)

RECORDED = Path(__file__).with_name("limiter_decisions.json")
PART_SECONDS = 300.0

SERVICES: dict[str, tuple[Callable[[], Service], float]] = {
    "a slow bucket": (lambda: bucket(0.3, 2), 3 * HOUR),
    "a bucket": (lambda: bucket(4, 20), HOUR),
    "a fast bucket": (lambda: bucket(40, 60), HOUR / 6),
    "a bucket that says when": (lambda: bucket(3, 5, retry_after=10.0), HOUR),
    "a bucket that rises": (lambda: bucket(1, 5, later=4), HOUR),
    "a bucket that falls": (lambda: bucket(4, 10, later=0.5), HOUR),
    "a window of a minute": (lambda: window(120, 60), HOUR),
    "a window of ten minutes": (lambda: window(600, 600), 2 * HOUR),
    "five at once": (lambda: at_once(5, 2.0), HOUR),
    "a queue": (lambda: at_once(4, 1.0, queues=True), HOUR),
    "a ban after five refusals": (lambda: banning(bucket(3, 10), 5, 300.0), 2 * HOUR),
    "a ban after one refusal": (lambda: banning(bucket(2, 5), 1, 120.0), 2 * HOUR),
    "an outage": (lambda: down(bucket(3, 10), 900.0, 1_800.0), HOUR),
    "an outage of refusals": (lambda: down(bucket(3, 10), 900.0, 1_800.0, REFUSED), HOUR),
    "one in twenty fails": (lambda: every(20, DOWN, bucket(3, 10)), HOUR),
    "one in forty is refused for itself": (lambda: every(40, REFUSED, bucket(3, 10)), HOUR),
    "one in nine is gone": (lambda: every(9, Answer(Outcome.GONE, 0.1), bucket(3, 10)), HOUR),
}


def decisions(service: Service, seconds: float) -> list[list[float]]:
    """Return for each five minutes: requests, refusals, charged attempts, and the mean of the times of the starts."""
    limiter, now, number = Limiter(), 0.0, 0
    parts: list[list[float]] = [[0, 0, 0, 0.0] for _ in range(int(seconds / PART_SECONDS))]
    under_way: list[tuple[float, int, float, Answer]] = []
    while now < seconds:
        part = parts[int(now / PART_SECONDS)]
        decision = limiter.next(now)
        if decision.start:
            number += 1
            answer = service(now, number)
            heapq.heappush(under_way, (now + answer.latency, limiter.started(now), now, answer))
            part[0] += 1
            part[1] += answer.outcome is not Outcome.OK
            part[3] += now
        elif under_way and (decision.again_at is None or under_way[0][0] <= decision.again_at):
            now, ticket, at, answer = heapq.heappop(under_way)
            charged = limiter.finished(
                now, ticket, answer.outcome, latency=now - at, retry_after=answer.retry_after, item=str(ticket)
            )
            part[2] += charged
        else:
            assert decision.again_at is not None
            now = decision.again_at
    return [[requests, failed, charged, round(at / max(requests, 1), 3)] for requests, failed, charged, at in parts]


@pytest.mark.parametrize("name", SERVICES)
def test_the_limiter_decides_as_recorded(name: str) -> None:
    make, seconds = SERVICES[name]

    assert decisions(make(), seconds) == json.loads(RECORDED.read_text("utf-8"))[name]


def test_the_page_about_the_limiter_has_its_constants() -> None:
    shown = stated("explain/limiter.md")

    assert len(shown) >= 40
    assert shown == in_code(shown, "penstock.control")


if __name__ == "__main__":
    found = {name: decisions(make(), seconds) for name, (make, seconds) in SERVICES.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in found.items())
    RECORDED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
