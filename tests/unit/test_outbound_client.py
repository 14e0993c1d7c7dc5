"""The client, against hosts that stand in for real ones in virtual time: what it sends, follows, bounds and raises."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import httpx2
import pytest

from penstock.model.errors import (
    BadParameter,
    Gone,
    PenstockError,
    Refused,
    Throttled,
    Unavailable,
    Unparsable,
)
from penstock.model.outcome import Dead, settle
from penstock.model.retry import Retry
from penstock.outbound.answers import Forbidden
from penstock.outbound.bodies import Bounds
from penstock.outbound.client import Client
from penstock.testing.loop import SocketsForbidden, VirtualLoop, VirtualTime, virtual

gzipped = partial(gzip.compress, mtime=0)  # which is in the names of the cases
Send = Callable[[dict[str, Any]], Awaitable[None]]
MORE = {"type": "http.response.body", "more_body": True}


class Host:
    """Stands in for a host: answers by path, and remembers what it was asked."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str, dict[str, str], bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["method"], scope["path"], headers, (await receive())["body"]))
        answer = self.answers[scope["path"].strip("/").replace(".", "_") or "root"]
        if callable(answer):
            await answer(send)
            return
        status, extra, body = answer
        await start(send, status, **extra)
        await send({"type": "http.response.body", "body": body})


async def start(send: Send, status: int = 200, **headers: str) -> None:
    listed = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})


def client(bounds: Bounds | None = None, **mounts: Host) -> Client:
    """A client in virtual time whose hosts are `https://{name}.example`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    made = Client(clock=VirtualTime(loop).clock, bounds=bounds)
    for name, host in mounts.items():
        made.mount(f"https://{name}.example", host)
    return made


async def failure(call: Awaitable[object]) -> PenstockError:
    with pytest.raises(PenstockError) as caught:
        await call
    return caught.value


@virtual
async def test_an_answer_is_bytes_text_and_json() -> None:
    shop = Host(
        lookup=(200, {"content_type": "text/javascript; charset=utf-8"}, b'\n\n\n{"resultCount": 0}'),
        page=(200, {"content_type": "text/html; charset=windows-1252"}, b"caf\xe9"),
        odd=(200, {"content_type": "text/html; charset=punycode"}, b"\xef\xbb\xbfcaf\xc3\xa9\xff"),
        empty=(204, {}, b""),
    )
    web = client(shop=shop)

    found = await web.get("https://shop.example/lookup?id=1")
    assert (found.status, found.json(), found.url) == (200, {"resultCount": 0}, "https://shop.example/lookup?id=1")
    assert found.headers["Content-Type"].startswith("text/javascript")
    assert (await web.get("https://shop.example/page")).text() == "café"
    assert (await web.get("https://shop.example/odd")).text() == "café�"
    assert (await web.get("https://shop.example/empty")).body == b""


@virtual
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a": NaN}', b"[" * 100_000, b"\xff\xfe", b'{"token": "abcdefgh"'])
async def test_what_is_no_json_is_unparsable(body: bytes) -> None:
    answer = await client(shop=Host(root=(200, {}, body))).get("https://shop.example")

    with pytest.raises(Unparsable, match="invalid JSON") as caught:
        answer.json()

    assert len(caught.value.facts["excerpt"]) <= 500
    assert "abcdefgh" not in caught.value.facts["excerpt"]


@virtual
@pytest.mark.spec("B3-09", "G5-26", "F-34")
async def test_json_calls_have_no_user_agent_and_pages_an_honest_one() -> None:
    shop = Host(root=(200, {}, b"{}"))
    web = client(shop=shop)

    await web.get("https://shop.example")
    await web.post("https://shop.example", json={"é": 1})
    await web.page("https://shop.example")
    await web.page("https://shop.example", headers={"User-Agent": "Mine/1"})

    agents = [headers.get("user-agent") for _, _, headers, _ in shop.asked]
    assert agents == [None, None, "Penstock", "Mine/1"]
    assert shop.asked[0][2] == {"host": "shop.example", "accept": "*/*", "accept-encoding": "gzip, deflate"}
    method, _, headers, body = shop.asked[1]
    assert (method, headers["content-type"], body) == ("POST", "application/json", '{"é": 1}'.encode())


@virtual
async def test_what_the_client_sets_itself_the_caller_does_not() -> None:
    web = client(shop=Host(root=(200, {}, b"")))

    for name in ("Host", "content-length", "Transfer-Encoding", "Accept-Encoding"):
        with pytest.raises(BadParameter, match=name):
            await web.get("https://shop.example", headers={name: "x"})


@virtual
@pytest.mark.spec("A9-05")
@pytest.mark.parametrize(
    "status, headers, error, wait",
    [
        (429, {}, Throttled, None),
        (429, {"retry_after": "30"}, Throttled, 30),
        (429, {"retry_after": "Thu, 01 Jan 2026 00:02:00 GMT"}, Throttled, 120),
        (503, {"retry_after": "9" * 30}, Throttled, 86_400),
        (503, {}, Unavailable, None),
        (500, {"retry_after": "soon"}, Unavailable, None),
        (529, {}, Unavailable, None),
        (408, {}, Unavailable, None),
        (404, {}, Gone, None),
        (410, {}, Gone, None),
        (400, {}, Refused, None),
        (403, {}, Refused, None),
        (451, {}, Refused, None),
        (304, {}, Unparsable, None),
        (999, {}, Unparsable, None),
    ],
)
async def test_a_status_is_an_error_that_says_whether_to_wait(
    status: int, headers: dict[str, str], error: type[PenstockError], wait: float | None
) -> None:
    web = client(shop=Host(root=(status, headers, b"Too bad. token=abcdefgh " + b"x" * 9_000)))

    caught = await failure(web.get("https://shop.example/?key=mine"))

    assert type(caught) is error
    assert caught.facts["status"] == status
    assert caught.facts["url"] == "https://shop.example/?key=[redacted]"
    assert caught.facts["retry_after"] == wait
    assert caught.facts["excerpt"].startswith("Too bad. token=[redacted]")
    assert len(caught.facts["excerpt"]) <= 500


@virtual
@pytest.mark.fault("F31")
@pytest.mark.parametrize("said", [("30", "60"), ("-1", "1e12"), ("abc", "30"), ("\x80", "")])
async def test_two_headers_that_say_when_to_come_back_are_no_reason_to_fail(said: tuple[str, str]) -> None:
    async def twice(send: Send) -> None:
        listed = [(b"retry-after", each.encode("latin-1")) for each in said]
        await send({"type": "http.response.start", "status": 429, "headers": listed})
        await send({"type": "http.response.body", "body": b""})

    caught = await failure(client(shop=Host(root=twice)).get("https://shop.example"))

    assert type(caught) is Throttled
    assert caught.facts["retry_after"] is None or 1 <= caught.facts["retry_after"] <= 86_400


@virtual
@pytest.mark.spec("A9-05")
async def test_a_403_means_too_fast_where_the_caller_says_so_and_for_no_host_by_itself() -> None:
    host = Host(root=(403, {}, b""))
    web = client(shop=host)
    web.mount("https://itunes.apple.com", host)

    assert type(await failure(web.get("https://shop.example"))) is Refused
    assert type(await failure(web.get("https://itunes.apple.com"))) is Refused
    caught = await failure(web.get("https://shop.example", refusals={403}))
    assert type(caught) is Throttled
    assert caught.facts["status"] == 403


@virtual
async def test_a_failure_whose_body_never_ends_is_reported_all_the_same() -> None:
    async def endless(send: Send) -> None:
        await start(send, 500)
        while True:
            await send({**MORE, "body": b"x" * 1_000})

    async def silent(send: Send) -> None:
        await start(send, 429, retry_after="7")
        await asyncio.sleep(10_000)

    web = client(shop=Host(endless=endless, silent=silent))

    assert len((await failure(web.get("https://shop.example/endless"))).facts["excerpt"]) == 500
    assert (await failure(web.get("https://shop.example/silent"))).facts["retry_after"] == 7


# -- redirects ------------------------------------------------------------------------------------------------------


@virtual
async def test_redirects_are_followed_and_credentials_stay_with_their_host() -> None:
    shop = Host(
        old=(301, {"location": "new?a=1#part"}, b""), new=(307, {"location": "https://cdn.example/page"}, b"moved")
    )
    cdn = Host(page=(200, {}, b"page"))
    web = client(shop=shop, cdn=cdn)
    headers = {"Authorization": "Bearer abc", "Cookie": "a=b", "X-Api-Key": "k", "Accept": "text/html"}

    answer = await web.page("https://shop.example/old", headers=headers)

    assert (answer.body, answer.url) == (b"page", "https://cdn.example/page")
    assert shop.asked[1][2]["authorization"] == "Bearer abc"
    assert set(cdn.asked[0][2]) == {"host", "accept", "accept-encoding", "user-agent"}
    assert cdn.asked[0][2]["host"] == "cdn.example"


@virtual
@pytest.mark.fault("F40")
async def test_redirects_end_after_five() -> None:
    shop = Host(
        loop=(302, {"location": "/loop"}, b""), **{f"p{n}": (302, {"location": f"/p{n + 1}"}, b"") for n in range(5)}
    )
    shop.answers["p5"] = (200, {}, b"there")
    web = client(shop=shop)

    assert (await web.get("https://shop.example/p0")).body == b"there"
    shop.asked.clear()
    caught = await failure(web.get("https://shop.example/loop"))
    assert isinstance(caught, Forbidden)
    assert caught.reason == "too_many_redirects"
    assert len(shop.asked) == 6


@virtual
@pytest.mark.fault("F40")
@pytest.mark.parametrize(
    "location, reason",
    [
        ("http://127.0.0.1/", "blocked_address"),
        ("//169.254.169.254/latest/meta-data", "blocked_address"),
        ("https://0x7f.1/", "blocked_address"),
        ("https://[::ffff:127.0.0.1]/", "blocked_address"),
        ("https://localhost/", "blocked_address"),
        ("file:///etc/passwd", "bad_scheme"),
        ("gopher://shop.example/", "bad_scheme"),
        ("https://a@shop.example/", "bad_url"),
        ("http://shop.example/", "downgrade"),
        ("https://shop.example:99999/", "bad_url"),
        ("https://[::zz]/", "bad_url"),
        ("https://shop.example:８０/", "bad_url"),
        ("//shop.example:+80/", "bad_url"),
    ],
)
async def test_a_redirect_is_checked_like_the_first_address(location: str, reason: str) -> None:
    caught = await failure(client(shop=Host(root=(302, {"location": location}, b""))).get("https://shop.example"))

    assert isinstance(caught, Forbidden)
    assert caught.reason == reason


@virtual
@pytest.mark.parametrize("status, method", [(301, "GET"), (302, "GET"), (303, "GET"), (307, "POST"), (308, "POST")])
async def test_what_was_posted_is_sent_again_only_if_the_redirect_says_so(status: int, method: str) -> None:
    shop = Host(root=(status, {"location": "/there"}, b""), there=(200, {}, b""))

    await client(shop=shop).post("https://shop.example", json=1)

    there = shop.asked[1]
    assert (there[0], there[3], "content-type" in there[2]) == (
        method,
        *((b"1", True) if method == "POST" else (b"", False)),
    )


@virtual
async def test_what_was_posted_is_not_handed_to_another_host_and_a_redirect_needs_a_place() -> None:
    web = client(shop=Host(root=(307, {"location": "https://cdn.example"}, b""), nowhere=(302, {}, b"")), cdn=Host())

    caught = await failure(web.post("https://shop.example", content=b"secret"))
    assert isinstance(caught, Forbidden)
    assert caught.reason == "body_elsewhere"
    assert isinstance(await failure(web.get("https://shop.example/nowhere")), Unparsable)


# -- bounds ---------------------------------------------------------------------------------------------------------


def packed(data: bytes, window: int) -> bytes:
    packer = zlib.compressobj(wbits=window)
    return packer.compress(data) + packer.flush()


@virtual
@pytest.mark.parametrize(
    "coding, body",
    [
        ("gzip", gzipped(b"hello " * 1_000)),
        ("x-gzip", gzipped(b"hello " * 600) + gzipped(b"hello " * 400)),
        ("gzip", gzipped(b"hello " * 1_000) + b"\0\0\0"),
        ("deflate", packed(b"hello " * 1_000, 15)),
        ("deflate", packed(b"hello " * 1_000, -15)),
        ("identity", b"hello " * 1_000),
    ],
)
@pytest.mark.parametrize("step", [1, 100_000])
async def test_packed_bodies_are_unpacked_however_they_are_cut(coding: str, body: bytes, step: int) -> None:
    async def cut(send: Send) -> None:
        await start(send, content_encoding=coding)
        for at in range(0, len(body), step):
            await send({**MORE, "body": body[at : at + step]})
        await send({"type": "http.response.body"})

    assert (await client(shop=Host(root=cut)).get("https://shop.example")).body == b"hello " * 1_000


@virtual
@pytest.mark.fault("F41")
@pytest.mark.parametrize(
    "coding, body, reason",
    [
        ("gzip", gzipped(b"\0" * 5_000_000), "too_large"),
        ("deflate", packed(b"\0" * 5_000_000, 15), "too_large"),
        ("gzip", gzipped(b"") * 2_000, "bad_coding"),
        ("gzip", b"no gzip at all", "bad_coding"),
        ("gzip, gzip", gzipped(gzipped(b"")), "bad_coding"),
        ("br", b"\x0b\x02\x80hello\x03", "bad_coding"),
        ("zstd", b"\x28\xb5\x2f\xfd", "bad_coding"),
        ("gzip", gzipped(b"hello" * 100)[:-9], "cut_off"),
        ("deflate", b"x", "cut_off"),
        ("", b"x" * 10_000_001, "too_large"),
    ],
)
async def test_bombs_and_nonsense_are_cut(coding: str, body: bytes, reason: str) -> None:
    caught = await failure(
        client(shop=Host(root=(200, {"content_encoding": coding}, body))).get("https://shop.example")
    )

    assert caught.facts["reason"] == reason
    assert isinstance(caught, Unavailable if reason == "cut_off" else Unparsable)


@virtual
@pytest.mark.fault("F41")
async def test_a_body_is_as_large_as_the_caller_allows() -> None:
    web = client(shop=Host(root=(200, {}, b"x" * 100)))

    assert len((await web.get("https://shop.example", max_bytes=100)).body) == 100
    assert len((await web.get("https://shop.example", max_bytes=50, truncate=True)).body) == 50
    assert (await failure(web.get("https://shop.example", max_bytes=99))).facts["reason"] == "too_large"


@virtual
@pytest.mark.fault("F41")
async def test_time_is_bounded_in_all_and_without_progress() -> None:
    async def drip(send: Send) -> None:
        await start(send)
        while True:
            await send({**MORE, "body": b"."})
            await asyncio.sleep(1)

    async def stall(send: Send) -> None:
        await start(send)
        await send({**MORE, "body": b"."})
        await asyncio.sleep(10_000)

    async def never(send: Send) -> None:
        await asyncio.sleep(10_000)

    web = client(shop=Host(drip=drip, stall=stall, never=never))
    loop = asyncio.get_running_loop()

    for path, seconds in [("drip", 30), ("stall", 15), ("never", 15)]:
        began = loop.time()
        caught = await failure(web.get(f"https://shop.example/{path}"))
        assert (type(caught), caught.facts["reason"], loop.time() - began) == (Unavailable, "timeout", seconds)
    assert len(asyncio.all_tasks()) == 1  # what was given up is not running any more


@virtual
@pytest.mark.parametrize("headers", [{f"x{n}": "1" for n in range(201)}, {"x": "y" * 70_000}])
async def test_headers_are_bounded(headers: dict[str, str]) -> None:
    caught = await failure(client(shop=Host(root=(200, headers, b""))).get("https://shop.example"))

    assert (type(caught), caught.facts["reason"]) == (Unparsable, "too_many_headers")


@virtual
async def test_in_virtual_time_a_host_that_is_not_mounted_is_an_error_of_the_test() -> None:
    with pytest.raises(SocketsForbidden):
        await client().get("https://shop.example")


@virtual
async def test_a_mounted_host_obeys_the_address_rules_and_its_errors_surface() -> None:
    async def breaks(send: Send) -> None:
        raise LookupError("the stand-in is broken")

    async def hangs_up(send: Send) -> None:
        await start(send)
        raise ConnectionResetError

    async def says_nothing(send: Send) -> None:
        pass

    web = client(shop=Host(breaks=breaks, hangs_up=hangs_up, nothing=says_nothing))

    with pytest.raises(Forbidden):
        web.mount("http://127.0.0.1:8787", Host())
    with pytest.raises(LookupError, match="stand-in"):
        await web.get("https://shop.example/breaks")
    with pytest.raises(Unavailable):
        await web.get("https://shop.example/hangs_up")
    with pytest.raises(RuntimeError, match="without an answer"):
        await web.get("https://shop.example/nothing")


@virtual
async def test_another_transport_can_take_the_place_of_the_network() -> None:
    def answer(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/down":
            raise httpx2.ConnectError("down")
        return httpx2.Response(200, content=str(request.url).encode())

    web = Client(transport=httpx2.MockTransport(answer))

    assert (await web.get("http://shop.example/a")).body == b"http://shop.example/a"
    assert type(await failure(web.get("http://shop.example/down"))) is Unavailable


@virtual
@pytest.mark.parametrize(
    "url", ["https://shop.example:８０/", "https://shop.example:+80/", "https://shop.example:8_0/"]
)
async def test_a_port_is_written_in_plain_digits(url: str) -> None:
    caught = await failure(client(shop=Host(root=(200, {}, b""))).get(url))

    assert isinstance(caught, Forbidden)
    assert caught.reason == "bad_url"


@virtual
async def test_a_redirect_to_several_places_is_refused() -> None:
    async def twice(send: Send) -> None:
        headers = [(b"location", b"/there"), (b"location", b"https://elsewhere.example/")]
        await send({"type": "http.response.start", "status": 302, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    caught = await failure(client(shop=Host(root=twice, there=(200, {}, b""))).get("https://shop.example"))

    assert isinstance(caught, Forbidden)
    assert caught.reason == "bad_redirect"


@virtual
@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer schlüssel"},
        {"X-Name": "a\r\nX-Other: b"},
        {"X-Name": "a\nb"},
        {"X\r\nY": "a"},
        {"": "a"},
    ],
    ids=str,
)
async def test_a_header_that_cannot_be_sent_is_a_mistake_that_is_not_tried_again(headers: dict[str, str]) -> None:
    shop = Host(root=(200, {}, b""))

    caught = await failure(client(shop=shop).get("https://shop.example", headers=headers))

    assert isinstance(caught, BadParameter)
    assert "ASCII" in str(caught)
    assert "schlüssel" not in str(caught)
    assert isinstance(settle(caught, attempt=1, retry=Retry()), Dead)
    assert shop.asked == []
