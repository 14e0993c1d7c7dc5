"""What every connector promises, checked against a page or a fixture: `penstock connect check`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
import msgspec

from penstock.connect.connector import Connector, shares
from penstock.connect.page import Page, Record, Tally, Unchanged
from penstock.connect.web import Http
from penstock.model.errors import PenstockError
from penstock.outbound.addresses import Rules
from penstock.outbound.answers import Response, redacted_url
from penstock.outbound.client import Client

PAGES_MAX = 20


@dataclass(frozen=True, slots=True)
class Checked:
    """One promise of a connector, and whether it keeps it."""

    name: str
    passed: bool
    message: str = ""


class Answer(msgspec.Struct, frozen=True):
    """A saved answer of a source."""

    url: str
    content_type: str
    body: str


class NoPace:
    """No pace: for one request by hand, and for fixtures."""

    def permit(self, item: str | None = None) -> AbstractAsyncContextManager[None]:
        return nullcontext()


class ReplayedAnswers(httpx2.AsyncBaseTransport):
    """Answers each request with the saved answer of its URL, or with the first one."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self._answers = {each.url: each for each in reversed(answers)}
        self._first = answers[0]

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        found = self._answers.get(redacted_url(str(request.url)), self._first)
        stream = httpx2.ByteStream(found.body.encode())
        return httpx2.Response(200, headers={"content-type": found.content_type}, stream=stream, request=request)


class Recording(Http):
    """Keeps the answers, to save them as a fixture."""

    answers: list[Answer]

    async def get(self, url: str = "", **asked: Any) -> Response:
        response = await super().get(url, **asked)
        kind = re.sub(r";.*", "", response.headers.get("content-type", "")) + "; charset=utf-8"
        asked_for = redacted_url(self._address(url, asked.get("params") or {}))
        self.answers.append(Answer(asked_for, kind, response.text()))
        return response


def recording(connector: Connector, allow: Sequence[str] = ()) -> Recording:
    """Return an `Http` that asks the source itself, and keeps what it answers. `allow` names private hosts with ports."""
    http = Recording(Client(rules=Rules(allow=allow)), connector, NoPace(), Tally(), {})
    http.answers = []
    return http


def replaying(connector: Connector, answers: Sequence[Answer]) -> Http:
    """Return an `Http` that answers from saved answers, without a network."""
    connector.robots = False
    urls = [urlsplit(url) for url in (connector.base, *(each.url for each in answers))]
    allow = [f"{each.hostname}:{each.port or {'http': 80}.get(each.scheme, 443)}" for each in urls if each.hostname]
    client = Client(rules=Rules(allow=allow), transport=ReplayedAnswers(answers))
    return Http(client, connector, NoPace(), Tally(), {})


async def read_pages(connector: Connector, cursor: str | None, http: Http, most: int = PAGES_MAX) -> list[Page]:
    """Return the first pages of a connector."""
    pages: list[Page] = []
    try:
        async for page in connector.fetch(cursor, http):
            pages.append(page)
            if len(pages) >= most:
                break
    except Unchanged:
        pass
    return pages


async def check_connector(connector: Connector, make_http: Any) -> list[Checked]:
    """Check a connector's contract; `make_http` returns a new `Http` over the same answers."""
    checks: list[Checked] = []

    def check(name: str, passed: bool, message: str = "") -> bool:
        checks.append(Checked(name, passed, "" if passed else message))
        return passed

    try:
        pages = await read_pages(connector, None, make_http())
    except PenstockError as error:
        check("it reads its source", False, str(error))
        return checks
    records = [record for page in pages for record in page.records]
    found = sum(len(page.records) + page.unreadable for page in pages)
    check("it reads its source", bool(records), "No record was found. Look at `records` and `id`.")
    check("each record has an id", all(each.id for each in records), "A record has no id.")
    ids = {each.id for each in records}
    repeated = sum(len(page.records) - len({each.id for each in page.records}) for page in pages)
    check("no page has an id twice", repeated == 0, f"{repeated} of {len(ids)} ids come twice on a page.")
    foreign = [each.id for each in records if each.source not in ("", connector.name)]
    check("no record is of another source", not foreign, f"Records of another source: {foreign[:3]}.")
    unreadable = sum(page.unreadable for page in pages)
    check("records can be read", unreadable * 2 <= found, f"{unreadable} of {found} records cannot be read.")
    complaint = next((why for n, page in enumerate(pages) if (why := connector.complaint(page, is_first=n == 0))), None)
    check("it finds what it expects", complaint is None, complaint or "")
    never = [name for name, share in shares(Page(records)).items() if not share]
    check("no field is lost", not never, f"These fields have no value in any record: {', '.join(never)}.")
    cursors = [page.cursor for page in pages if page.cursor is not None]
    check("its cursor is text", all(cursors), "A cursor is empty, which reads like none at all.")
    if cursors:
        again = await read_pages(connector, cursors[-1], make_http())
        old = _old(records, [record for page in again for record in page.records], connector)
        check("a second read yields nothing old", not old, f"{old} records come again from the saved cursor.")
    else:
        again = await read_pages(connector, None, make_http())
        same = {each.id: each.digest for page in again for each in page.records}
        first = {each.id: each.digest for each in records}
        check("a second read yields the same", same == first, "The same answer was read in two ways.")
    return checks


def _old(first: list[Record], again: list[Record], connector: Connector) -> int:
    """Records that come again although the cursor is past them; those within the lag are meant to."""
    spec = getattr(connector, "spec", None)
    declared = getattr(spec, "cursor", None)
    if declared is not None and (declared.lag or not declared.filter):
        known = {each.id: each.digest for each in first}
        return sum(known.get(each.id, each.digest) != each.digest for each in again)
    return len({each.id for each in again} & {each.id for each in first})
