"""What a connector asks its host with: at the host's pace, and with signs of blocking recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode, urljoin, urlsplit

from penstock.connect.connector import Connector
from penstock.connect.page import Blocked, Changed, Tally, Unchanged
from penstock.model.errors import Gone, PenstockError, Refused, Throttled, Unparsable

if TYPE_CHECKING:
    from penstock.outbound.answers import Response
    from penstock.outbound.client import Client

LOOKED_AT = 4_096  # bytes of a body in which a challenge shows
REQUESTS_MAX = 1_000  # of one run
CHALLENGES = (b"radware page", b"radware bot manager", b"cf-challenge", b"captcha-delivery", b"/_incapsula_resource")
MISFITS = (400, 404, 405, 410, 422)  # statuses by which a host says that the request is not what it takes


class HostPace(Protocol):
    def permit(self, item: str | None = None) -> AbstractAsyncContextManager[None]: ...


class Http:
    """Asks one connector's host. `get` raises `Blocked` and `Changed` where the answer shows it."""

    def __init__(
        self, client: Client, connector: Connector, pace: HostPace, tally: Tally, memory: Mapping[str, str]
    ) -> None:
        """`memory` is what `remembered` was after the last good run; empty where everything is to be read."""
        self._client = client
        self._connector = connector
        self._pace = pace
        self._tally = tally
        self._memory = memory
        self.remembered: dict[str, str] = {}

    async def get(
        self, url: str = "", *, params: Mapping[str, object] | None = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        """Ask for a URL, or a path below `base`. Raises `Unchanged` to the collector where one page is all there is.

        The connector's headers, which may hold a key, are sent to the host of `base` alone."""
        address = self._address(url, params or {})
        if self._tally.requests >= REQUESTS_MAX:
            raise Changed(f"{self._connector.name} made {REQUESTS_MAX:,} requests in one run: its pages do not end.")
        self._tally.requests += 1
        first = self._tally.requests == 1
        known = self._memory if first and self._connector.one_page else {}
        base = self._connector.base
        own = self._connector.headers if not base or urlsplit(address)[:2] == urlsplit(base)[:2] else {}
        given = {**own, **(headers or {}), **_conditions(known)}
        try:
            async with self._pace.permit():
                response = await self._client.request(
                    "GET", address, headers=given, stay=True, robots=self._connector.robots
                )
        except PenstockError as error:
            self._tally.refused += 1
            raise _named(error, self._connector) from error
        self._check(response)
        if first:
            self._remember(response, known)
        return response

    async def json(self, url: str = "", **asked: Any) -> Any:
        """Ask for JSON. A page of HTML in its place is a sign of blocking."""
        response = await self.get(url, **asked)
        if response.body[:200].lstrip()[:1] == b"<":
            raise Blocked(f"{response.url} answered with a page instead of JSON.", url=response.url)
        try:
            return response.json()
        except Unparsable as error:
            raise Changed(str(error)) from error

    def _address(self, url: str, params: Mapping[str, object]) -> str:
        address = urljoin(self._connector.base, url) if url else self._connector.base
        query = urlencode({name: value for name, value in params.items() if value is not None}, doseq=True)
        return f"{address}{'&' if '?' in address else '?'}{query}" if query else address

    def _check(self, response: Response) -> None:
        head = response.body[:LOOKED_AT].lower()
        signs = [text.encode() for text in self._connector.blocked.contains]
        if any(sign.lower() in head for sign in (*CHALLENGES, *signs)):
            raise Blocked(f"{response.url} answered with a challenge.", url=response.url)

    def _remember(self, response: Response, known: Mapping[str, str]) -> None:
        digest = hashlib.blake2b(response.body, digest_size=16).hexdigest()
        self.remembered = {"digest": digest}
        for name in ("etag", "last-modified"):
            if value := response.headers.get(name, "")[:500]:
                self.remembered[name] = value
        if known.get("digest") == digest:
            raise Unchanged(f"{response.url} sent the same bytes as the last time.")


def _conditions(known: Mapping[str, str]) -> dict[str, str]:
    asked = {"If-None-Match": known.get("etag"), "If-Modified-Since": known.get("last-modified")}
    return {name: value for name, value in asked.items() if value and value.isascii()}


def _named(error: PenstockError, connector: Connector) -> PenstockError:
    """Return what a failed request says about the source."""
    status = getattr(error, "status", None)
    signs = connector.blocked
    if status == 304:
        return Unchanged(str(error))
    if getattr(error, "reason", "") == "other_host":
        host = urlsplit(str(getattr(error, "location", ""))).hostname or "another host"
        known = not signs.redirect or any(host.endswith(each) for each in signs.redirect)
        text = f"{connector.name} redirects to {host}"
        return Blocked(f"{text}, which asks for a person.") if known else Changed(f"{text}. Change `base`.")
    if isinstance(error, Throttled) and status not in signs.status:
        return error
    if status in signs.status:
        return Blocked(str(error), status=status)
    if status in MISFITS and isinstance(error, Gone | Refused):
        return Changed(f"{error} The source takes another request than the connector sends.", status=status)
    return error
