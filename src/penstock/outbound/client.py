"""The one way out: an HTTP client that goes only where the rules let it and takes no more than the bounds allow."""

from __future__ import annotations

import asyncio
import json as json_text
import re
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Self, TypedDict, Unpack

import h11
import httpcore2
import httpx2

from penstock.contracts.clock import Clock
from penstock.model.arguments import checked
from penstock.model.errors import BadParameter, PenstockError, Unavailable, Unparsable
from penstock.outbound.addresses import Rules, check_port, origin_of
from penstock.outbound.answers import (
    Forbidden,
    Response,
    excerpt_of,
    failure_of,
    redacted_url,
    seconds_to_wait,
    text_of,
)
from penstock.outbound.bodies import ACCEPTED, Bounds, Streamed, check_headers, read_body
from penstock.outbound.mounts import Asgi, Forwarded, Mounted
from penstock.outbound.network import SENDING, Network, Resolver, system_resolver
from penstock.outbound.robots import FILE_BYTES_MAX, Robots
from penstock.runtime.clock import HostClock
from penstock.runtime.events import Events

LOOPBACK = ("127.0.0.1", "localhost", "::1")
PRODUCT = "Penstock"  # what pages are fetched as, unless the user has a better name
EXCERPT_BYTES_MAX = 16 * 1024  # of a failure's body
EXCERPT_SECONDS = 2.0  # waited for it: the status is known already

_PAGE = "text/html,application/xhtml+xml,*/*;q=0.8"
# Set here, where they agree with what is sent and with what can be read.
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,256}")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OURS = frozenset("host content-length transfer-encoding connection upgrade expect te trailer accept-encoding".split())
REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Whatever else the caller set may be a credential.
_FOR_ANYBODY = frozenset({"accept", "accept-language", "user-agent"})
_TIMEOUTS = (TimeoutError, httpcore2.TimeoutException, httpx2.TimeoutException)
# The first of the operating system's is TimeoutError, which asyncio raises too.
_TRANSFER = (
    *(httpcore2.ProtocolError, httpcore2.NetworkError, httpcore2.TimeoutException),
    *(httpx2.TransportError, OSError),
)
_OUR_MISTAKES = (httpcore2.LocalProtocolError, httpx2.LocalProtocolError)


def failed_transfer(error: Exception, url: str) -> PenstockError:
    # First, since a handshake that is given up looks like one that failed.
    if isinstance(error, _TIMEOUTS):
        return Unavailable(f"{url} did not answer in time.", reason="timeout", url=url)
    for cause in _causes(error):
        match cause:
            case PenstockError():
                return cause
            case ssl.SSLCertVerificationError():
                why = f"{url} has an invalid certificate: {cause.verify_message}."
                return Forbidden(why, reason="bad_certificate", url=url)
            case ssl.SSLEOFError() | ssl.SSLZeroReturnError():
                break
            case ssl.SSLError():
                return Forbidden(f"{url} offers no secure version of TLS: {cause.reason}.", reason="bad_tls", url=url)
            case socket.gaierror() | UnicodeError():
                return Unavailable(f"{url} has a host name without an address: {cause}.", reason="dns", url=url)
            case h11.RemoteProtocolError(error_status_hint=431):
                return Unparsable(f"{url} was answered with too many headers.", reason="too_many_headers", url=url)
            case h11.RemoteProtocolError() if not str(cause).startswith("peer closed"):
                return Unparsable(f"{url} does not speak HTTP: {cause}.", reason="bad_http", url=url)
    if isinstance(error, _OUR_MISTAKES):
        return BadParameter(f"The request to {url} cannot be sent: {error}.", url=url)
    return Unavailable(f"{url} cannot be reached: {error}.", reason="connection", url=url)


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it goes out, to an address that was checked."""

    method: str
    url: httpx2.URL
    headers: Mapping[str, str]
    content: bytes = b""


def followed(asked: Asked, *, status: int, locations: Sequence[str], rules: Rules) -> Asked:
    """The request that a redirect asks for, or Forbidden."""
    shown = redacted_url(str(asked.url))
    if len(locations) > 1:
        raise Forbidden(f"{shown} redirects to several places.", reason="bad_redirect", status=status, url=shown)
    if not any(locations):
        raise Unparsable(f"{shown} redirects to nowhere.", reason="bad_redirect", status=status, url=shown)
    check_port(locations[0])
    try:
        joined = asked.url.join(locations[0])
    except (httpx2.InvalidURL, ValueError) as error:
        raise Forbidden(f"{shown} redirects to an invalid URL.", reason="bad_url", status=status, url=shown) from error
    url = rules.target(joined)
    if asked.url.scheme == "https" and url.scheme == "http":
        raise Forbidden(f"{shown} redirects from https to http.", reason="downgrade", status=status, url=shown)
    elsewhere = origin_of(url) != origin_of(asked.url)
    headers = {name: value for name, value in asked.headers.items() if not elsewhere or name.lower() in _FOR_ANYBODY}
    if status in (307, 308) or asked.method in ("GET", "HEAD"):
        if elsewhere and asked.content:
            raise Forbidden(
                f"{shown} redirects a body to another host.", reason="body_elsewhere", status=status, url=shown
            )
        return Asked(asked.method, url, headers, asked.content)
    return Asked("GET", url, {name: value for name, value in headers.items() if name.lower() != "content-type"})


class Options(TypedDict, total=False):
    headers: Mapping[str, str] | None
    robots: bool  # obey the host's robots.txt
    refusals: Set[int]  # statuses by which this host says "too fast", besides 429
    max_bytes: int | None  # of the unpacked body
    follow: bool  # redirects; what signs its body follows none
    stay: bool  # follow redirects on the same host only; another one is Forbidden with reason other_host
    truncate: bool  # beyond `max_bytes` the body is cut instead of refused
    on_sent: (
        Callable[[], object] | None
    )  # called before the first byte is sent: from then on the host may have the request


class ClientOptions(TypedDict, total=False):
    """The keywords of `app.http(...)`."""

    rules: Rules | None
    bounds: Bounds | None
    user_agent: str | None
    resolver: Resolver
    transport: httpx2.AsyncBaseTransport | None
    tls: ssl.SSLContext | None
    unverified: Iterable[str]


class Client:
    """Calls the outside. Everything that is not a 2xx is an error that says whether to wait, or to give up.

    JSON calls carry no User-Agent. Pages, and whatever asks robots.txt, carry `user_agent`.
    """

    events: Events | None = None  # of the app that made it

    @checked
    def __init__(
        self,
        *,
        rules: Rules | None = None,
        bounds: Bounds | None = None,
        clock: Clock | None = None,
        user_agent: str | None = PRODUCT,
        resolver: Resolver = system_resolver,
        transport: httpx2.AsyncBaseTransport | None = None,
        tls: ssl.SSLContext | None = None,
        unverified: Iterable[str] = (),
    ) -> None:
        self.rules = rules or Rules()
        self.bounds = bounds or Bounds()
        self.clock = clock or HostClock()
        self.user_agent = user_agent
        self._network = transport or Network(self.rules, resolver, tls=tls, unverified=unverified)
        self._mounts: dict[str, Mounted | Forwarded] = {}
        self._robots = Robots(self._robots_file, product=user_agent or "*", clock=self.clock)
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()

    def mount(self, origin: str, app: Asgi) -> None:
        """Lets an ASGI app stand in for a host such as `https://shop.example`. No name is looked up for it."""
        self._mounts[origin_of(self.rules.target(origin))] = Mounted(app)

    def forward(self, origin: str, url: str) -> None:
        """Lets a server on this machine stand in for a host: `forward("https://shop.example", "http://127.0.0.1:8788")`.
        It may be no other machine's."""
        if httpx2.URL(url).host not in LOOPBACK:
            raise BadParameter(f"{url} is not on this machine. A fake server must listen on 127.0.0.1.", value=url)
        self._mounts[origin_of(self.rules.target(origin))] = Forwarded(url)

    async def get(self, url: str, **options: Unpack[Options]) -> Response:
        """Asks an API, without a User-Agent; raises where the answer is not 2xx."""
        return await self.request("GET", url, **options)

    async def post(
        self, url: str, *, json: object = None, content: bytes = b"", **options: Unpack[Options]
    ) -> Response:
        """Sends JSON, or bytes as they are, to an API."""
        return await self.request("POST", url, json=json, content=content, **options)

    async def page(self, url: str, **options: Unpack[Options]) -> Response:
        """A page: with our name and what a browser would accept, unless the caller says otherwise."""
        options["headers"] = self._named({"Accept": _PAGE}) | dict(options.get("headers") or {})
        return await self.request("GET", url, **options)

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        json: object = None,
        robots: bool = False,
        refusals: Set[int] = frozenset(),
        max_bytes: int | None = None,
        truncate: bool = False,
        follow: bool = True,
        stay: bool = False,
        on_sent: Callable[[], object] | None = None,
    ) -> Response:
        """One call, redirects included. `refusals` are statuses by which this host says "too fast", besides 429.

        With `robots` the host's robots.txt is obeyed and the host gets one such call at a time.
        """
        asked = self._asked(method, url, headers, content, json, robots=robots)
        bytes_max = self.bounds.body_bytes if max_bytes is None else max_bytes

        most = self.bounds.redirects if follow else 0
        try:
            async with asyncio.timeout(self.bounds.total_seconds) as limit:
                for _ in range(most + 1):
                    shown = redacted_url(str(asked.url))
                    async with self._turn(asked.url, limit) if robots else nullcontext():
                        if robots:
                            await self._robots.check(asked.url)
                        answer = await self._exchange(asked, shown, refusals, bytes_max, truncate, on_sent)
                    if isinstance(answer, Response):
                        return answer
                    if stay and answer.url.host != asked.url.host:
                        where = redacted_url(str(answer.url))
                        why = f"{shown} redirects to another host, {answer.url.host}."
                        raise Forbidden(why, reason="other_host", url=shown, location=where)
                    asked = answer
        except _TRANSFER as error:
            raise failed_transfer(error, shown) from error
        raise Forbidden(f"{shown} is behind more than {most} redirects.", reason="too_many_redirects", url=shown)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes = b"",
        json: object = None,
        refusals: Set[int] = frozenset(),
    ) -> AsyncIterator[Streamed]:
        """Open a call whose answer is read piece by piece: `async with web.stream("POST", url, json=...) as answer:`, then
        `async for piece in answer:`. Raises as `request` does; a redirect is refused.

        The bounds hold for the whole block, and for each piece."""
        asked = self._asked(method, url, headers, content, json, robots=False)
        shown = redacted_url(str(asked.url))
        try:
            async with (
                asyncio.timeout(self.bounds.total_seconds),
                self._answered(asked, shown, codings="identity") as response,
            ):
                if response.status_code in REDIRECTS:
                    raise Forbidden(f"{shown} redirects a stream.", reason="too_many_redirects", url=shown)
                if not 200 <= response.status_code < 300:
                    raise await self._failure(response, shown, refusals)
                yield Streamed(response, self.bounds, shown)
        except _TRANSFER as error:
            raise failed_transfer(error, shown) from error

    def _asked(
        self, method: str, url: str, headers: Mapping[str, str] | None, content: bytes, json: object, *, robots: bool
    ) -> Asked:
        """Return the request, or raise where a header or the address cannot be used."""
        given = dict(headers or {})
        for name, value in given.items():
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(str(value)):
                raise BadParameter(f"The header {name!r} has an invalid value: use printable ASCII.", name=name)
        if wrong := sorted(name for name in given if name.lower() in _OURS):
            raise BadParameter(f"The client sets {', '.join(wrong)} itself. Remove it.", value=wrong)
        if json is not None:
            content = json_text.dumps(json, ensure_ascii=False, allow_nan=False).encode()
            given = {"Content-Type": "application/json"} | given
        if robots:
            given = self._named({}) | given
        return Asked(method.upper(), self.rules.target(url), given, content)

    async def aclose(self) -> None:
        """Close all connections. `async with ps.Client() as web:` does it at the end of its block."""
        for mounted in self._mounts.values():
            await mounted.aclose()
        await self._network.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _exchange(
        self,
        asked: Asked,
        shown: str,
        refusals: Set[int],
        bytes_max: int,
        truncate: bool,
        on_sent: Callable[[], object] | None,
    ) -> Response | Asked:
        """One hop: the answer, or the request that a redirect leads to."""
        async with self._answered(asked, shown, on_sent=on_sent) as response:
            status = response.status_code
            if status in REDIRECTS:
                locations = response.headers.get_list("location")
                await self._read_off(response, shown)
                return followed(asked, status=status, locations=locations, rules=self.rules)
            if not 200 <= status < 300:
                raise await self._failure(response, shown, refusals)
            body = await read_body(response, self.bounds, bytes_max=bytes_max, url=shown, truncate=truncate)
            return Response(status, shown, response.headers, body)

    @asynccontextmanager
    async def _answered(
        self, asked: Asked, shown: str, *, codings: str = ACCEPTED, on_sent: Callable[[], object] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request; its answer is closed at the end of the block. The tracer of the app sees it until the headers."""
        headers = {"Accept": "*/*", "Accept-Encoding": codings} | dict(asked.headers)
        extensions = {} if on_sent is None else {SENDING: on_sent}
        request = httpx2.Request(
            asked.method, asked.url, headers=headers, content=asked.content or None, extensions=extensions
        )
        call = self._mounts.get(origin_of(asked.url), self._network).handle_async_request(request)
        tracer = None if self.events is None else self.events.tracer
        async with asyncio.timeout(self.bounds.progress_seconds):
            response = await (call if tracer is None else tracer("request", request.method, {"url": shown}, call))
        try:
            check_headers(response.headers, self.bounds, url=shown)
            yield response
        finally:
            await response.stream.aclose()  # type: ignore[union-attr]

    async def _read_off(self, response: httpx2.Response, shown: str) -> None:
        """A connection is closed unless its answer was read to the end: a short one is, so that the next hop can have it."""
        length = response.headers.get("content-length", "")
        if length.isdecimal() and int(length[:9]) <= EXCERPT_BYTES_MAX:
            await self._excerpt(response, shown)

    async def _excerpt(self, response: httpx2.Response, shown: str) -> bytes:
        """Return the beginning of a body that is not needed; nothing if it does not come soon."""
        bounds = replace(self.bounds, progress_seconds=min(EXCERPT_SECONDS, self.bounds.progress_seconds))
        try:
            async with asyncio.timeout(EXCERPT_SECONDS):
                return await read_body(response, bounds, bytes_max=EXCERPT_BYTES_MAX, url=shown, truncate=True)
        except (PenstockError, httpcore2.ProtocolError, httpcore2.NetworkError, httpx2.TransportError, OSError):
            return b""

    async def _failure(self, response: httpx2.Response, shown: str, throttles: Set[int]) -> PenstockError:
        body = await self._excerpt(response, shown)
        failure = failure_of(
            response.status_code,
            url=shown,
            retry_after=seconds_to_wait(response.headers.get("retry-after"), now=self.clock.now()),
            excerpt=excerpt_of(text_of(body, response.headers.get("content-type", ""))),
            throttles=throttles,
        )
        assert failure is not None
        return failure

    async def _robots_file(self, url: str) -> Response:
        return await self.request("GET", url, headers=self._named({}), max_bytes=FILE_BYTES_MAX, truncate=True)

    def _named(self, headers: dict[str, str]) -> dict[str, str]:
        return headers | ({"User-Agent": self.user_agent} if self.user_agent else {})

    @asynccontextmanager
    async def _turn(self, url: httpx2.URL, limit: asyncio.Timeout) -> AsyncIterator[None]:
        """Waits until no other call of this kind is at the host. The wait does not count as time of the call."""
        lock = self._turns.setdefault(origin_of(url), asyncio.Lock())
        loop = asyncio.get_running_loop()
        left = (limit.when() or 0.0) - loop.time()
        limit.reschedule(None)
        async with lock:
            limit.reschedule(loop.time() + left)
            yield
