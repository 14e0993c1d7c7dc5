"""Journeys of operators through the dashboard in Chromium."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, expect

from penstock.testing import virtual
from tests.browser.conftest import PHONE, in_thread, open_page, visiting
from tests.browser.serving import Served, serving
from tests.ui.planted import market_app, plant

pytestmark = pytest.mark.slow
LIVE_SECONDS = 6.0  # two ticks of two seconds, on a machine that others use too


def test_a_wrong_token_is_refused_and_a_deep_link_leads_back_after_the_login(browser: Browser, market: Served) -> None:
    with visiting(browser, market, token=None, problems=[]) as page:
        page.goto(f"{market.url}/ui/dead?queue=found")
        expect(page).to_have_url(re.compile("/ui/login"))
        page.fill("#token", "wrong")
        page.click("button.primary")
        expect(page.locator("[role=alert]")).to_contain_text("not valid")
        page.fill("#token", "viewer")
        page.click("button.primary")
        expect(page).to_have_url(f"{market.url}/ui/dead?queue=found")


def test_a_viewer_sees_no_button_that_changes_anything(browser: Browser, market: Served) -> None:
    with visiting(browser, market, "viewer") as page:
        for path in (
            "/queues",
            "/queues/orders",
            "/dead",
            "/dead/1",
            "/cron",
            "/runs/research/approve-0-0",
            "/pace/prices",
        ):
            page.goto(f"{market.url}/ui{path}")
            assert page.locator("main form[method=post]").count() == 0, path


def test_what_happens_elsewhere_appears_without_a_reload(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        page.goto(f"{market.url}/ui/queues/imports")
        expect(page.locator("#live")).to_have_attribute("data-state", "on")
        before = int(page.locator(".stat b").first.inner_text().replace(",", ""))

        async def send() -> None:
            async with market.app.unit():
                market.app.queues["imports"].send({"file": "late.csv"})

        market.run(send)
        expect(page.locator(".stat b").first).to_have_text(f"{before + 1:,}", timeout=LIVE_SECONDS * 1_000)
        page.keyboard.press("r")
        expect(page.locator("#live")).to_have_attribute("data-state", "paused")
        assert "paused=1" in page.url


def test_focus_an_open_detail_and_what_is_typed_survive_refreshes(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        page.goto(f"{market.url}/ui/queues/imports")
        expect(page.locator("#live")).to_have_attribute("data-state", "on")
        page.locator("summary", has_text="Commands").click()
        page.fill("textarea[name=body]", '{"file": "typed.csv"}')
        page.locator("h1").click()

        async def send() -> None:
            async with market.app.unit():
                market.app.queues["imports"].send({"file": "x.csv"})

        before = page.locator(".stat b").first.inner_text()
        market.run(send)
        expect(page.locator(".stat b").first).not_to_have_text(before, timeout=LIVE_SECONDS * 1_000)
        assert page.locator("textarea[name=body]").input_value() == '{"file": "typed.csv"}'
        expect(page.locator("details[open] .command").first).to_be_visible()


def test_a_message_is_sent_by_a_form_that_names_what_does_not_fit(browser: Browser, market: Served) -> None:
    with visiting(browser, market, problems=[]) as page:
        page.goto(f"{market.url}/ui/queues/orders")
        page.fill("textarea[name=body]", '{"item": 5}')
        page.click("button:has-text('Send')")
        expect(page.locator("[role=status]")).to_contain_text("order.placed")
        assert page.locator("textarea[name=body]").input_value() == '{"item": 5}'
        page.fill("textarea[name=body]", '{"item": "hat"}')
        page.click("button:has-text('Send')")
        expect(page.locator("[role=status]")).to_contain_text("Sent message")


def test_a_purge_asks_for_the_name(browser: Browser, market: Served) -> None:
    with visiting(browser, market, problems=[]) as page:
        page.goto(f"{market.url}/ui/queues/imports")
        page.click("a:has-text('Purge')")
        page.fill("input[name=typed]", "import")
        page.click("main button.danger")
        expect(page.locator("[role=status]")).to_contain_text("Type the name")
        page.goto(f"{market.url}/ui/confirm/queues/purge?name=imports")
        page.fill("input[name=typed]", "imports")
        page.click("main button.danger")
        expect(page.locator("[role=status]")).to_contain_text("Purged")
        page.goto(f"{market.url}/ui/audit")
        expect(page.locator("tbody tr").first).to_contain_text("queues purge imports")


def test_an_id_a_queue_a_run_and_a_letter_are_found_by_the_search_box(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        named = {"orders": "orders", "approve-20-20": "approve-20-20", "#3": "Dead letter 3", "crawl": "crawl"}
        for text, heading in named.items():
            page.keyboard.press("/")
            page.fill("#q", text)
            page.keyboard.press("Enter")
            expect(page.locator("h1")).to_have_text(heading)


def test_a_letter_is_corrected_and_replayed_with_the_keyboard_alone(browser: Browser, market: Served) -> None:
    with visiting(browser, market, problems=[]) as page:
        page.goto(f"{market.url}/ui/dead?queue=orders")
        page.locator("#bulk tbody a").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("h1")).to_have_text(re.compile(r"Dead letter \d+"))
        letter = page.url.rsplit("/", 1)[1]
        page.fill("textarea[name=body]", '{"item": "hat", "count": "many"}')
        page.locator("button:has-text('Save payload')").focus()
        page.keyboard.press("Enter")
        expect(page.locator("[role=status]")).to_contain_text("not a valid order.placed")
        page.fill("textarea[name=body]", '{"item": "hat", "count": 1}')
        page.locator("button:has-text('Save payload')").focus()
        page.keyboard.press("Enter")
        expect(page.locator("[role=status]")).to_contain_text("Saved the payload")
        page.locator("main .head button:has-text('Replay')").focus()
        page.keyboard.press("Enter")
        expect(page.locator("main .head .badge")).to_have_text("replayed")
        assert page.url.endswith(letter)


def test_a_cause_is_replayed_in_stages_and_stops_at_the_first_that_dies_again(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        page.goto(f"{market.url}/ui/dead?queue=found&reason=permanent")
        page.click("button:has-text('Replay this cause')")
        expect(page.locator("main")).to_contain_text("They go back to their queues")
        page.click("main button.primary")
        expect(page.locator("tbody .badge").first).to_have_text("stopped", timeout=20_000)
        expect(page.locator("tbody tr").first).to_contain_text("died again")


def test_a_double_click_runs_a_task_once(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        page.goto(f"{market.url}/ui/cron/compact")
        page.locator("main .head button:has-text('Run now')").dblclick()
        page.wait_for_timeout(3_000)
        page.goto(f"{market.url}/ui/cron/compact")
        assert page.locator("section tbody tr").count() == 1


def test_a_signal_from_the_page_completes_a_run(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        page.goto(f"{market.url}/ui/runs/research/approve-40-40")
        page.fill("input[name=payload]", "true")
        page.click("button:has-text('Send signal')")
        expect(page.locator("main .head .badge")).to_have_text("complete", timeout=LIVE_SECONDS * 1_000)


def test_eight_tabs_load_and_few_of_them_hold_a_stream(browser: Browser, market: Served) -> None:
    with visiting(browser, market) as page:
        seen: list[str] = []
        tabs = [open_page(page.context, market, seen) for _ in range(8)]
        for tab in tabs:
            tab.goto(f"{market.url}/ui/queues")
            expect(tab.locator("h1")).to_have_text("Queues")
        page.wait_for_timeout(1_000)
        streams = market.live.streams
        for tab in tabs:
            tab.close()
        page.goto(f"{market.url}/ui/cost")
        page.wait_for_timeout(1_500)
        left = market.live.streams

    assert streams <= 4
    assert left == 0
    assert all("503" in each for each in seen), seen


def test_everything_works_without_javascript(browser: Browser, market: Served) -> None:
    with visiting(browser, market, java_script_enabled=False) as page:
        page.goto(f"{market.url}/ui/queues/found")
        page.click("main .head button:has-text('Pause')")
        expect(page.locator("[role=status]")).to_contain_text("Paused queue found")
        page.click("main .head button:has-text('Resume')")
        page.goto(f"{market.url}/ui/cron/rates")
        page.click("main .head button:has-text('Run now')")
        expect(page.locator("[role=status]")).to_contain_text("Triggered cron task rates")
        page.goto(f"{market.url}/ui/dead/2")
        page.click("main .head button:has-text('Replay')")
        expect(page.locator("[role=status]")).to_contain_text("Replayed dead letter 2")


def test_at_night_a_letter_is_replayed_on_a_phone_in_four_taps(browser: Browser, market: Served) -> None:
    with visiting(browser, market, viewport=PHONE, is_mobile=True, has_touch=True, color_scheme="dark") as page:
        page.tap(".needs li[data-kind=dead] a >> nth=0")
        page.tap("#causes >> xpath=../.. >> a.button >> nth=0")
        expect(page.locator(".sentence")).to_be_visible()
        page.tap("main .head button:has-text('Replay')")
        expect(page.locator("main .head .badge")).to_have_text("replayed")


@pytest.fixture
def ending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("ending")

    @virtual
    async def made() -> None:
        await plant(folder, start=datetime.now(UTC) - timedelta(minutes=7), hours=0.1)

    in_thread(made)
    app = market_app()
    app.database = str(folder / "market.db")
    with serving(app, works=False) as served:
        yield served


def test_a_page_whose_server_is_gone_says_so_and_a_stream_holds_no_server_up(browser: Browser, ending: Served) -> None:
    with visiting(browser, ending, problems=[]) as page:
        page.goto(f"{ending.url}/ui/queues")
        expect(page.locator("#live")).to_have_attribute("data-state", "on")
        began = time.monotonic()
        ending.live.close()
        expect(page.locator("#live")).to_have_attribute("data-state", "lost", timeout=LIVE_SECONDS * 1_000)
        deadline = began + 5
        while ending.live.streams and time.monotonic() < deadline:
            page.wait_for_timeout(50)

    assert ending.live.streams == 0
