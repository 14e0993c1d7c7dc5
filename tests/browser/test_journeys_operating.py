"""Journeys of operators at work: what happens elsewhere appears, bulk replays, two operators, restarts, hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from penstock.runtime.audit import operated_by
from tests.browser.conftest import visiting
from tests.browser.serving import Served, serving
from tests.browser.small import HOSTILE, Small

pytestmark = pytest.mark.slow
LIVE_MS = 8_000  # two ticks of two seconds, on a machine that others use too
JOB_MS = 40_000


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


@pytest.fixture
def served(small: Small) -> Iterator[Served]:
    with serving(small.app) as served:
        yield served


def test_the_first_message_and_a_pause_elsewhere_appear_on_open_pages(
    browser: Browser, small: Small, served: Served
) -> None:
    small.is_broken = False

    async def pause() -> None:
        with operated_by("ada", "cli"):
            await (await small.app.desk()).pause("jobs")

    with visiting(browser, served) as page:
        expect(page.locator("#live")).to_have_attribute("data-state", "on")
        served.run(lambda: small.send("one"))
        expect(page.locator("main td.lead").first).to_contain_text("jobs", timeout=LIVE_MS)
        page.goto(f"{served.url}/ui/queues")
        expect(page.locator("#live")).to_have_attribute("data-state", "on")
        served.run(pause)
        expect(page.locator("tbody .badge").first).to_have_text("paused", timeout=LIVE_MS)


def test_a_pause_on_the_page_stops_deliveries_and_is_in_the_audit(
    browser: Browser, small: Small, served: Served
) -> None:
    small.is_broken = False
    served.run(lambda: small.send("before"))
    with visiting(browser, served) as page:
        page.goto(f"{served.url}/ui/queues/jobs")
        page.click("main .head button:has-text('Pause')")
        expect(page.locator("[role=status]")).to_contain_text("Paused queue jobs")
        served.run(lambda: small.send("after"))
        expect(page.locator("#reasons >> xpath=../..")).to_contain_text("The queue is paused", timeout=LIVE_MS)
        assert "after" not in small.done
        page.click("tbody tr td.lead a >> nth=0")
        expect(page.locator("main")).to_contain_text("paused")
        page.goto(f"{served.url}/ui/audit")
        expect(page.locator("tbody tr").first).to_contain_text("queues pause jobs")


def test_a_rate_is_tuned_seen_beside_the_declared_one_and_taken_back(
    browser: Browser, small: Small, served: Served
) -> None:
    served.run(lambda: small.send("one"))
    with visiting(browser, served) as page:
        page.goto(f"{served.url}/ui/queues/jobs")
        page.fill("#settings input[name=rate]", "2.5")
        page.click("#settings button:has-text('Tune')")
        expect(page.locator("#settings")).to_contain_text("the app declares no limit")
        page.click("#settings button:has-text('Use what the app declares')")
        expect(page.locator("#settings")).not_to_contain_text("(tuned")


def test_a_replay_that_lives_goes_on_when_its_tab_is_closed(browser: Browser, small: Small, served: Served) -> None:
    names = [f"job {number}" for number in range(130)]
    served.run(lambda: small.send(*names))
    with visiting(browser, served) as page:
        page.goto(f"{served.url}/ui/dead?queue=jobs&reason=permanent")
        expect(page.locator("main")).to_contain_text("130", timeout=LIVE_MS)
        small.is_broken = False
        page.click("button:has-text('Replay this cause')")
        page.fill("input[name=rate]", "100")
        page.click("main button.primary")
        expect(page.locator("tbody .badge").first).to_have_text("running")
    with visiting(browser, served) as page:
        page.goto(f"{served.url}/ui/bulk")
        expect(page.locator("tbody .badge").first).to_have_text("done", timeout=JOB_MS)
        expect(page.locator("tbody tr").first).to_contain_text("130 of 130")
        page.goto(f"{served.url}/ui/dead")
        expect(page.locator("main")).to_contain_text("There are no dead letters.")
        page.goto(f"{served.url}/ui/pages/jobs")
        expect(page.locator("tbody tr")).to_have_count(130)

    assert sorted(small.done) == sorted(names)


def test_of_two_operators_who_replay_a_letter_one_learns_that_it_was_done(
    browser: Browser, small: Small, served: Served
) -> None:
    served.run(lambda: small.send("one"))
    with (
        visiting(browser, served, "admin", problems=[]) as first,
        visiting(browser, served, "operator", problems=[]) as second,
    ):
        for page in (first, second):
            page.goto(f"{served.url}/ui/dead/1?paused=1")
            expect(page.locator("main .head button:has-text('Replay')")).to_be_visible()
        small.is_broken = False
        first.click("main .head button:has-text('Replay')")
        expect(first.locator("[role=status]")).to_contain_text("Replayed dead letter 1")
        second.click("main .head button:has-text('Replay')")
        expect(second.locator("[role=status]")).to_contain_text("meanwhile")

    assert small.done == ["one"]


def test_a_run_is_restarted_from_a_step_and_compared(browser: Browser, small: Small, served: Served) -> None:
    async def start(*ids: str) -> None:
        async with small.app.unit():
            for id in ids:
                small.app.workflows["build"][id].start("hat")

    served.run(lambda: start("one"))
    with visiting(browser, served) as page:
        page.goto(f"{served.url}/ui/runs/build/one")
        expect(page.locator("main .head .badge")).to_have_text("errored", timeout=LIVE_MS)
        served.run(lambda: start("two"))
        small.is_broken = False
        page.click("summary:has-text('As a table')")
        page.click("tr:has-text('second') a:has-text('Restart from here')")
        page.click("main button:has-text('Restart')")
        expect(page.locator("main .head .badge")).to_have_text("complete", timeout=LIVE_MS)
        page.fill("input[name=b]", "two")
        page.click("button:has-text('Compare')")
        expect(page.locator("h1")).to_have_text("Two runs")
        expect(page.locator("main")).to_contain_text("step by step", ignore_case=True)


def test_no_text_of_strangers_runs_in_the_browser(browser: Browser, small: Small, served: Served) -> None:
    async def plant() -> None:
        await small.send(HOSTILE)
        await small.shelves[HOSTILE.replace("/", "|")].put(HOSTILE)
        async with small.app.unit():
            small.app.workflows["build"]["hostile"].start(HOSTILE)

    served.run(plant)
    with visiting(browser, served) as page:
        page.wait_for_timeout(1_500)
        paths = [
            "/",
            "/queues",
            "/queues/jobs",
            "/dead",
            "/dead/1",
            "/runs",
            "/runs/build/hostile",
            "/objects",
            "/activity",
        ]
        for path in [*paths, "/search?q=cannot", "/audit", "/pages/jobs", f"/search?q={HOSTILE}"]:
            page.goto(f"{served.url}/ui{path}")
            expect(page.locator("h1")).to_be_visible()
            assert page.locator("main img, main script").count() == 0, path
            assert page.evaluate("window.hacked === undefined"), path
        page.goto(f"{served.url}/ui/objects")
        page.click("td.lead a >> nth=0")
        expect(page.locator("pre").first).to_contain_text("window.hacked=1")


def test_a_form_of_the_app_shows_what_follows_from_what_is_typed(
    browser: Browser, small: Small, served: Served
) -> None:
    small.is_broken = False
    with visiting(browser, served) as page:
        page.click(".wide-nav a:has-text('Jobs done')")
        page.click("main .head a:has-text('New job')")
        page.locator("input[name=name]").press_sequentially("hat")
        expect(page.locator("#preview")).to_contain_text("It will be HAT.", timeout=LIVE_MS)
        page.click("main button.primary")
        expect(page.locator("[role=status]")).to_contain_text("Sent hat.")
    with visiting(browser, served, java_script_enabled=False) as page:
        page.goto(f"{served.url}/ui/forms/jobs/add")
        page.fill("input[name=name]", "scarf")
        page.click("button:has-text('Preview')")
        expect(page.locator("#preview")).to_contain_text("It will be SCARF.")
        page.click("main button.primary")
        page.goto(f"{served.url}/ui/pages/jobs")
        expect(page.locator("tbody")).to_contain_text("scarf")
