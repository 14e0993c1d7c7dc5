"""Journeys to the reason why something waits: messages of every kind, a run that sleeps, retries and waits, a rare error."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import penstock as ps
from penstock.web.ui import pages_messages
from tests.browser.conftest import visiting
from tests.browser.serving import Served, serving
from tests.browser.small import Job, Small

pytestmark = pytest.mark.slow
LIVE_MS = 12_000  # some ticks of two seconds, on a machine that others use too


class Waiting(Small):
    """The app with a queue that no handler serves, one whose handler fails, and a run that waits in every way."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.is_broken = False
        self.orphans = self.app.queue("orphans")
        self.flaky = self.app.queue("flaky", retries=ps.Retry(3, first=600.0, longest=600.0))
        self.tried = 0

        @self.flaky.handler
        async def fail(body: dict[str, str]) -> None:
            raise ValueError(f"no price in {body['page']}")

        @self.app.workflow(retries=ps.Retry(2, first=1.0, longest=1.0))
        async def long(run: ps.Run) -> bool:
            await run.step("collect", self._collected)
            await run.sleep(2)
            await run.step("summarize", self._summarized)
            return await run.wait_for("approved", bool)

    async def _collected(self) -> int:
        return 1

    async def _summarized(self) -> int:
        self.tried += 1
        if self.tried == 1:
            raise ConnectionError("the model did not answer")
        return self.tried

    async def start(self) -> None:
        async with self.app.unit():
            self.app.workflows["long"]["one"].start()

    async def fill(self) -> None:
        """Send messages that each wait for a reason of their own."""
        desk = await self.app.desk()
        async with self.app.unit():
            self.jobs.send(Job(name="later"), delay=3_600)
            self.orphans.send({"page": "1"})
            self.flaky.send({"page": "seven"})
        async with self.app.unit():
            await desk.tune("jobs", parallel=None, rate=0.001)
            self.jobs.send(Job(name="first"))
        async with self.app.unit():
            self.jobs.send(Job(name="second"))


@pytest.fixture
def small(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


@pytest.fixture
def served(small: Waiting) -> Iterator[Served]:
    with serving(small.app) as served:
        yield served


def test_each_way_to_wait_has_its_sentence_and_its_action(browser: Browser, small: Waiting, served: Served) -> None:
    served.run(small.fill)
    with visiting(browser, served) as page:
        reasons = page.locator("#reasons >> xpath=../..")
        page.goto(f"{served.url}/ui/queues/jobs")
        expect(reasons).to_contain_text("1 rate limited", timeout=LIVE_MS)
        expect(reasons).to_contain_text("1 delayed")
        expect(reasons.locator("a:has-text('Tune')")).to_be_visible()
        page.goto(f"{served.url}/ui/queues/orphans")
        expect(reasons).to_contain_text("1 unserved")
        expect(reasons.locator(".command")).to_contain_text("penstock run")
        page.click("main .head button:has-text('Pause')")
        expect(reasons).to_contain_text("The queue is paused")
        expect(reasons.locator("button:has-text('Resume')")).to_be_visible()


def test_a_handler_that_fails_is_seen_before_its_first_dead_letter(
    browser: Browser, small: Waiting, served: Served
) -> None:
    served.run(small.fill)
    with visiting(browser, served) as page:
        condition = page.locator(".needs li[data-kind=failing]")
        expect(condition).to_contain_text("Handlers of queue flaky fail", timeout=LIVE_MS)
        raised = re.compile(r"ValueError: no price in seven at test_journeys_waiting\.py:\d+")
        expect(condition).to_contain_text(raised)
        condition.locator("a").click()
        expect(page.locator("main .head .badge")).to_have_text("delayed")
        expect(page.locator("main")).to_contain_text(raised)
        page.click("tbody td.lead a >> nth=0")
        expect(page.locator(".sentence").first).to_contain_text("attempt")
        expect(page.locator("main")).to_contain_text(re.compile(r"at test_journeys_waiting\.py:\d+"))


def test_a_run_grows_on_its_page_while_it_sleeps_retries_and_waits(
    browser: Browser, small: Waiting, served: Served
) -> None:
    served.run(small.start)
    with visiting(browser, served) as page:
        page.goto(f"{served.url}/ui/runs/long/one")
        bars = page.locator(".gantt .name span.clip")
        expect(bars).to_have_text(["collect", "sleep-1"], timeout=LIVE_MS)
        expect(bars).to_have_text(["collect", "sleep-1", "summarize", "approved"], timeout=2 * LIVE_MS)
        expect(page.locator(".gantt .name").nth(2)).to_contain_text("×2")
        page.fill("input[name=payload]", "true")
        page.click("button:has-text('Send signal')")
        expect(page.locator("main .head .badge")).to_have_text("complete", timeout=LIVE_MS)


def test_a_search_for_a_rare_error_goes_on_in_windows(
    browser: Browser, small: Waiting, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages_messages, "WINDOW", 40)
    small.is_broken = True
    served.run(lambda: small.send("needle"))
    with visiting(browser, served) as page:
        page.goto(f"{served.url}/ui/dead")
        expect(page.locator("main")).to_contain_text("cannot do needle", timeout=LIVE_MS)
        served.run(lambda: small.send(*(f"hay {number}" for number in range(100))))
        expect(page.locator("#causes >> xpath=..")).to_contain_text("of all 101", timeout=LIVE_MS)
        page.fill("#q", "do needle")
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text("Search")
        found, older = page.locator("tbody a"), page.locator("a:has-text('Search further back')")
        for _ in range(8):
            expect(found.or_(older).first).to_be_visible()
            if found.count():
                break
            searched = page.url
            older.click()
            expect(page).not_to_have_url(searched)
        assert "before=" in page.url
        expect(page.locator("tbody")).to_contain_text("cannot do needle")
