"""Journeys of operators who come in: links, ended sessions, guesses, other sites, a prefix, a server that starts again."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import open_page, visiting
from tests.browser.serving import Served, serving
from tests.browser.small import Small
from tests.ui.test_pages import LISTS

pytestmark = pytest.mark.slow
RECONNECT_MS = 15_000


@pytest.fixture
def small(tmp_path: Path) -> Small:
    return Small(tmp_path)


@pytest.fixture
def served(small: Small) -> Iterator[Served]:
    with serving(small.app) as served:
        yield served


def test_a_link_logs_in_once(browser: Browser, served: Served) -> None:
    link = f"{served.url}/ui/login?link={served.access.make_link()}"
    with visiting(browser, served, token=None) as page:
        page.goto(link)
        expect(page.locator("h1")).to_have_text("Overview")
    with visiting(browser, served, token=None, problems=[]) as page:
        page.goto(link)
        expect(page.locator("[role=alert]")).to_contain_text("used before")


def test_the_answer_to_the_eleventh_wrong_token_says_how_long_to_wait(browser: Browser, served: Served) -> None:
    with visiting(browser, served, token=None, problems=[]) as page:
        page.goto(f"{served.url}/ui/login")
        for _ in range(11):
            page.fill("#token", "wrong")
            page.click("button.primary")
            expect(page.locator("[role=alert]")).to_be_visible()
        expect(page.locator("[role=alert]")).to_contain_text(re.compile(r"Try again in \d+ s"))


class Mail(BaseHTTPRequestHandler):
    """A page of another site with a link."""

    link = ""

    def do_GET(self) -> None:
        body = f"<a href='{self.link}'>an alert</a>".encode()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        return


def test_a_link_of_another_site_finds_the_session(browser: Browser, served: Served) -> None:
    handler = type("OneMail", (Mail,), {"link": f"{served.url}/ui/queues"})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as mail:
        threading.Thread(target=mail.serve_forever, daemon=True).start()
        with visiting(browser, served, problems=[]) as page:
            page.goto(f"http://localhost:{mail.server_port}/")
            page.click("text=an alert")
            expect(page.locator("h1")).to_have_text("Queues")
        mail.shutdown()


def test_when_the_session_has_ended_the_next_click_says_so_and_what_was_typed_is_kept(
    browser: Browser, small: Small, served: Served
) -> None:
    served.run(lambda: small.send("one"))
    with visiting(browser, served, problems=[]) as page:
        page.goto(f"{served.url}/ui/queues/jobs")
        page.fill("textarea[name=body]", '{"name": "typed"}')
        cookies = page.context.cookies()
        page.context.clear_cookies()
        page.click("button:has-text('Send')")
        expect(page.locator("#ended")).to_contain_text("session has ended")
        assert page.locator("textarea[name=body]").input_value() == '{"name": "typed"}'
        page.context.add_cookies(cookies)  # type: ignore[arg-type]
        page.click("button:has-text('Send')")
        expect(page.locator("[role=status]")).to_contain_text("Sent message")


def test_a_post_by_hand_of_a_viewer_is_refused_and_audited(browser: Browser, served: Served) -> None:
    with visiting(browser, served, "viewer", problems=[]) as page:
        status = page.evaluate(
            "fetch(document.documentElement.dataset.prefix + '/do/queues/pause', {method: 'POST',"
            " headers: {'content-type': 'application/x-www-form-urlencoded'}, body: 'name=jobs'}).then((it) => it.status)"
        )
    with visiting(browser, served, "admin") as page:
        page.goto(f"{served.url}/ui/audit")
        expect(page.locator("tbody tr").first).to_contain_text("refused")
        expect(page.locator("tbody tr").first).to_contain_text("viewer")

    assert status == 403


def test_every_list_of_an_empty_database_says_what_to_do(browser: Browser, served: Served) -> None:
    with visiting(browser, served) as page:
        for path in LISTS:
            page.goto(f"{served.url}/ui{path}")
            expect(page.locator("h1")).to_be_visible()
            assert len(page.locator("main").inner_text().split()) > 3, path


def test_under_a_prefix_links_forms_and_the_stream_work(browser: Browser, tmp_path: Path) -> None:
    small = Small(tmp_path)
    with serving(small.app, prefix="/ops/small") as served:
        served.run(lambda: small.send("one", "two"))
        with visiting(browser, served) as page:
            page.click(".wide-nav a:has-text('Queues')")
            expect(page.locator("h1")).to_have_text("Queues")
            page.click("main td.lead a:has-text('jobs')")
            expect(page.locator("h1")).to_have_text("jobs")
            expect(page.locator("#live")).to_have_attribute("data-state", "on")
            page.click("main .head button:has-text('Pause')")
            expect(page.locator("[role=status]")).to_contain_text("Paused queue jobs")
            assert page.url == f"{served.url}/ui/queues/jobs"


def test_a_page_reconnects_to_a_server_that_was_started_again(browser: Browser, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    context = browser.new_context()
    try:
        with serving(Small(tmp_path).app, port=port) as served:
            page = open_page(context, served, [])
            page.goto(f"{served.url}/ui/login")
            page.fill("#token", "admin")
            page.click("button.primary")
            page.goto(f"{served.url}/ui/queues")
            expect(page.locator("#live")).to_have_attribute("data-state", "on")
        expect(page.locator("#live")).to_have_attribute("data-state", "lost", timeout=RECONNECT_MS)
        with serving(Small(tmp_path).app, port=port):
            expect(page.locator("#live")).to_have_attribute("data-state", "on", timeout=RECONNECT_MS)
            context.close()
    finally:
        context.close()
