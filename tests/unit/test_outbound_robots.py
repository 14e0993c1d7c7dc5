"""robots.txt: what a file means to us, and what it means that there is none or that it cannot be had."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.model.errors import Unavailable
from penstock.outbound.answers import Forbidden
from penstock.outbound.client import Client
from penstock.outbound.robots import FILE_BYTES_MAX, parse_robots, product_token
from penstock.testing.loop import VirtualLoop, VirtualTime, virtual

FILE = b"""\xef\xbb\xbf
user-agent: otherbot
Disallow: /

User-Agent: Penstock/2.0
user-agent: friend
Disallow: /private   # not for us
Allow: /private/open
Disallow: /*.php$
Disallow: /a%3cd
Disallow: /caf\xc3\xa9
Sitemap: https://shop.example/map.xml
nonsense
: nonsense
Disallow
Crawl-delay: 1e9
Disallow:

User-agent: *
Disallow: /

User-agent: penstock
Disallow: /late
"""


@pytest.mark.fault("F50")
@pytest.mark.parametrize(
    "path, allowed",
    [
        ("/", True),
        ("/private", False),
        ("/private/x", False),
        ("/privateer", False),
        ("/private/open/x", True),
        ("/x.php", False),
        ("/x.php?a=1", True),
        ("/x/y.php", False),
        ("/a%3Cd/e", False),
        ("/caf%C3%A9", False),
        ("/%70rivate", False),
        ("/late", False),
        ("/robots.txt", True),
    ],
)
def test_the_longest_rule_of_our_groups_wins(path: str, allowed: bool) -> None:
    assert parse_robots(FILE, "Penstock").allow(path) is allowed


@pytest.mark.parametrize(
    "file, path, allowed",
    [
        (b"", "/a", True),
        (b"Disallow: /", "/a", True),  # a rule of nobody
        (b"User-agent: *\nDisallow: /", "/a", False),
        (b"User-agent: *\nDisallow: /\nUser-agent: penstock\nAllow: /", "/a", True),
        (b"User-agent: *\nDisallow: /\nUser-agent: penstock\n", "/a", True),
        (b"User-agent: *\nAllow: /a\nDisallow: /a", "/a", True),
        (b"User-agent: *\nDisallow: /a*b*c$", "/axbyc", False),
        (b"User-agent: *\nDisallow: /a*b*c$", "/axbycd", True),
        (b"User-agent: *\nDisallow: /a*aa$", "/aa", True),
        (b"User-agent: *\nDisallow: /a$", "/a", False),
        (b"User-agent: *\nDisallow: *", "/a", False),
        (b"User-agent: *\rDisallow: /a\r\n", "/a", False),
        (b"\xff\xfe\x00garbage\nUser-agent: *\nDisallow: /a", "/a", False),
        (b"User-agent: *\nDisallow: /a" + b"#" * FILE_BYTES_MAX + b"\nDisallow: /b", "/b", True),
    ],
)
def test_small_files(file: bytes, path: str, allowed: bool) -> None:
    assert parse_robots(file, "Penstock").allow(path) is allowed


def test_our_product_is_the_first_word_of_the_agent() -> None:
    assert product_token("Penstock/0.1 (+https://shop.example)") == "penstock"
    assert product_token("") == "*"


@pytest.mark.fault("F50")
def test_a_file_made_to_take_long_takes_no_time() -> None:
    rules = parse_robots(b"User-agent: *\n" + (b"Disallow: /" + b"a*" * 900 + b"b$\n") * 270, "Penstock")
    began = time.process_time()

    assert rules.allow("/" + "a" * 7_000)

    assert len(rules.patterns) == 270
    assert time.process_time() - began < 5


class Site:
    """A site with one page, and a robots.txt that answers as it is told."""

    def __init__(self, status: int = 404, text: bytes = b"", location: str = "") -> None:
        self.status, self.text, self.location = status, text, location
        self.asked: list[str] = []
        self.agents: set[str] = set()
        self.at_once = self.most_at_once = 0
        self.pause = 0.0

    async def __call__(self, scope: Any, receive: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        self.asked.append(scope["path"])
        self.agents.add(dict(scope["headers"])[b"user-agent"].decode())
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.pause)
        finally:
            self.at_once -= 1
        robots = scope["path"] == "/robots.txt"
        headers = [(b"location", self.location.encode())] if robots and self.location else []
        await send({"type": "http.response.start", "status": self.status if robots else 200, "headers": headers})
        await send({"type": "http.response.body", "body": self.text if robots else b"page"})


def visitor(**sites: Site) -> tuple[Client, VirtualTime]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    time = VirtualTime(loop)
    web = Client(clock=time.clock, user_agent="Penstock/1")
    for name, site in sites.items():
        web.mount(f"https://{name}.example", site)
    return web, time


@virtual
@pytest.mark.fault("F50")
@pytest.mark.parametrize("status", [404, 403, 401, 410, 400])
async def test_no_file_means_no_rules(status: int) -> None:
    site = Site(status, b"User-agent: *\nDisallow: /")
    web, _ = visitor(shop=site)

    assert (await web.page("https://shop.example/a", robots=True)).body == b"page"
    assert site.agents == {"Penstock/1"}


@virtual
@pytest.mark.fault("F50")
@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_host_that_cannot_be_asked_is_left_alone_for_now(status: int) -> None:
    site = Site(status)
    web, time = visitor(shop=site)

    for _ in range(2):
        with pytest.raises(Unavailable) as caught:
            await web.get("https://shop.example/a", robots=True)
        assert caught.value.facts["reason"] == "robots_unreachable"
    assert site.asked == ["/robots.txt"]

    site.status = 404
    await time.advance(seconds=61)
    assert (await web.get("https://shop.example/a", robots=True)).body == b"page"


@virtual
@pytest.mark.fault("F50")
async def test_a_host_that_does_not_answer_is_left_alone_for_now() -> None:
    site = Site()
    site.pause = 10_000
    web, _ = visitor(shop=site)

    with pytest.raises(Unavailable) as caught:
        await web.get("https://shop.example/a", robots=True)

    assert caught.value.facts["reason"] == "robots_unreachable"


@virtual
@pytest.mark.fault("F50")
async def test_a_file_is_asked_for_once_a_day_and_only_if_it_is_to_be_obeyed() -> None:
    site = Site(200, b"User-agent: *\nDisallow: /private")
    web, time = visitor(shop=site)

    await web.page("https://shop.example/private")
    assert site.asked == ["/private"]

    for _ in range(3):
        with pytest.raises(Forbidden) as caught:
            await web.get("https://shop.example/private?key=1", robots=True)
        assert caught.value.reason == "robots"
        assert "key=1" not in str(caught.value)
        await web.get("https://shop.example/a", robots=True)
    assert site.asked.count("/robots.txt") == 1
    assert site.asked.count("/private") == 1

    await time.advance(days=1)
    await web.get("https://shop.example/a", robots=True)
    assert site.asked.count("/robots.txt") == 2


@virtual
@pytest.mark.fault("F50")
async def test_the_first_500_kib_of_a_long_file_are_obeyed() -> None:
    web, _ = visitor(shop=Site(200, b"User-agent: *\nDisallow: /a\n" + b"#" * 2_000_000))

    with pytest.raises(Forbidden):
        await web.get("https://shop.example/a", robots=True)
    await web.get("https://shop.example/b", robots=True)


@virtual
@pytest.mark.fault("F50")
async def test_the_file_may_be_elsewhere_and_a_loop_is_no_file() -> None:
    other = Site(200, b"User-agent: *\nDisallow: /a")
    web, _ = visitor(
        shop=Site(301, location="https://other.example/robots.txt"), other=other, loop=Site(302, location="/robots.txt")
    )

    with pytest.raises(Forbidden):
        await web.get("https://shop.example/a", robots=True)
    assert (await web.get("https://loop.example/a", robots=True)).body == b"page"


@virtual
@pytest.mark.fault("F50")
async def test_where_a_redirect_leads_is_asked_too() -> None:
    class Moved(Site):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            await send(
                {"type": "http.response.start", "status": 302, "headers": [(b"location", b"https://b.example/x")]}
            )
            await send({"type": "http.response.body"})

    web, _ = visitor(a=Moved(), b=Site(200, b"User-agent: *\nDisallow: /x"))

    with pytest.raises(Forbidden, match=r"b\.example/x"):
        await web.get("https://a.example/", robots=True)


@virtual
@pytest.mark.fault("F50")
async def test_a_host_gets_one_call_at_a_time_and_waiting_for_a_turn_is_free() -> None:
    shop, other = Site(), Site()
    shop.pause = other.pause = 10.0
    web, _ = visitor(shop=shop, other=other)
    hosts = ["shop"] * 6 + ["other"]

    pages = await asyncio.gather(*(web.get(f"https://{host}.example/a", robots=True) for host in hosts))

    assert len(pages) == 7
    assert shop.most_at_once == 1
    assert asyncio.get_running_loop().time() == 70
