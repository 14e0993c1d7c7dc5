"""A service that is down for ten minutes: it is left alone meanwhile, nothing is lost, and it is not run over after that."""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

import penstock as ps
from penstock.outbound.mounts import Event
from penstock.testing import TestApp, virtual
from tests.extent import sampled

# What comes in, and what the service can take, in a second. `PENSTOCK_OUTAGE=5` runs it five times as large.
SCALE = int(os.environ.get("PENSTOCK_OUTAGE") or 1)
INCOMING, CAPACITY = 2 * SCALE, 3 * SCALE
DOWN_SECONDS = 600


class Page(ps.Command, type="page.wanted"):
    number: int


class Service:
    """Takes `CAPACITY` calls a second and says 429 to more; while it is down it says 503 to all."""

    def __init__(self) -> None:
        self.down = False
        self.calls: list[tuple[float, int]] = []
        self._left = float(CAPACITY)
        self._at = 0.0

    async def __call__(self, _scope: Event, _receive: object, send: Callable[[Event], asyncio.Future[None]]) -> None:
        now = asyncio.get_running_loop().time()
        self._left, self._at = min(CAPACITY, self._left + (now - self._at) * CAPACITY), now
        status = 503 if self.down else 200 if self._left >= 1 else 429
        self._left -= status == 200
        self.calls.append((now, status))
        await asyncio.sleep(0.05)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    def at(self, since: float, until: float) -> list[float]:
        return [at for at, _ in self.calls if since <= at < until]


def most_in(calls: Sequence[float], seconds: float) -> float:
    """The most calls a second, over any stretch of so many seconds."""
    return max(bisect_left(calls, at + seconds) - place for place, at in enumerate(calls)) / seconds


@pytest.mark.fault("F27")
@sampled("is_known", [True, False], every=2)
@virtual
async def test_a_service_that_is_down_is_left_alone_and_not_run_over_when_it_is_back(is_known: bool) -> None:
    """A limit that is known holds in every second. One that has to be found is passed for moments, in looking for it, but
    not over ten seconds."""
    service = Service()
    app = ps.App("crawl")
    pages = app.queue("pages", Page, parallel=16, jitter=True)
    pace = app.pace("service.example", rate=(0.001, CAPACITY if is_known else 1_000.0))
    web = app.http()
    web.mount("https://service.example", service)  # type: ignore[arg-type]

    @pages.handler
    async def fetch(page: Page) -> None:
        async with pace.permit():
            await web.get(f"https://service.example/{page.number}")

    async with TestApp(app) as shop:
        time = asyncio.get_running_loop().time

        async def pass_by(seconds: int) -> None:
            for _ in range(seconds):
                async with shop.unit():
                    pages.send_all(Page(number=number) for number in range(INCOMING))
                await shop.advance(seconds=1)

        await pass_by(180)
        assert (await shop.counts(pages)).acked >= 170 * INCOMING  # as much as comes in

        service.down, fell = True, time()
        await pass_by(DOWN_SECONDS)
        tried = service.at(fell, time())
        assert len(tried) <= 0.05 * INCOMING * DOWN_SECONDS
        assert tried[-1] > fell + DOWN_SECONDS - 150  # it is still looked for
        assert await shop.dead(pages) == []

        service.down, rose = False, time()
        await shop.advance(minutes=5)
        taken = service.at(rose, time())
        assert taken[0] - rose < 150
        assert most_in(taken, 10) <= 1.2 * CAPACITY
        if is_known:
            assert most_in(taken, 1) <= 1.2 * CAPACITY + 1  # the first and the last may both be in
        await shop.advance(minutes=30)

        counts = await shop.counts(pages)
        assert counts.acked == counts.sent == (180 + DOWN_SECONDS) * INCOMING
        assert await shop.dead(pages) == []
        assert {each.number for each in shop.delivered(pages)} == {1}  # nobody was charged for it
        assert Counter(status for _, status in service.calls)[200] == counts.sent
