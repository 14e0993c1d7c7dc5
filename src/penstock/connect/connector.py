"""A connector reads one source: a class with `fetch`, or a TOML file that `DeclaredConnector` reads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import msgspec

from penstock.connect.page import Page, Record
from penstock.model.errors import BadApp

if TYPE_CHECKING:
    from penstock.connect.web import Http

EVERY_SECONDS = 1_800.0
READABLE_LEAST = 0.5  # of a page's records, or the source has changed
MISSING_MOST = 0.2  # of a required field
JUDGED_LEAST = 10  # fewer records say nothing about shares


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a source normally sends. A run that finds less than this is not saved, and alerts."""

    at_least: int = 0  # records on the first page
    required: tuple[str, ...] = ()  # fields that at most a fifth of the records may lack
    new_within: int = 0  # runs in which something is new or changed; 0 does not ask
    fetched_within: int = 6  # runs in which anything is read


class Signs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How this source blocks: statuses, texts in the first 4 kB of a body, and hosts it redirects to."""

    status: tuple[int, ...] = (403,)
    contains: tuple[str, ...] = ()
    redirect: tuple[str, ...] = ()


class Connector:
    """Reads one source. Override `fetch`, which yields pages of records from a cursor on.

    `base` names the host, whose pace all connectors of that host share: at most `rate` requests a second. With
    `one_page`, an answer 304 or the bytes of the last time end the run at once.
    """

    name: str = ""
    kind: ClassVar[str] = "python"
    base: str = ""
    every: float = EVERY_SECONDS
    rate: float = 1.0
    headers: Mapping[str, str] = {}
    robots: bool = False  # obey the host's robots.txt
    one_page: bool = False
    reads_all: bool = False  # every run reads what the source has, whatever the cursor
    full_every: float = 0.0  # how often a run ignores the cursor, so that what is gone is noticed; 0 never does
    expect: Expect = Expect()
    blocked: Signs = Signs()

    def fetch(self, cursor: str | None, http: Http) -> AsyncIterator[Page]:
        """Yield pages from the cursor on, None for the first time: an async generator."""
        raise BadApp(f"{type(self).__name__} needs `async def fetch(self, cursor, http)` that yields pages.")

    async def fetch_new(self, cursor: str | None, http: Http) -> tuple[list[Record], str | None]:
        """Return all candidates from the cursor on, and the next cursor."""
        records: list[Record] = []
        async for page in self.fetch(cursor, http):
            records += page.records
            cursor = cursor if page.cursor is None else page.cursor
        return records, cursor

    def complaint(self, page: Page, *, is_first: bool) -> str | None:
        """Return why this page is not what the source normally sends, or None."""
        return complaint(self.expect, page, is_first=is_first)


def complaint(expect: Expect, page: Page, *, is_first: bool) -> str | None:
    readable = len(page.records)
    found = (readable + page.unreadable) if page.read is None else page.read
    if page.unreadable and (found - page.unreadable) < READABLE_LEAST * found:
        return f"only {found - page.unreadable} of {found} records could be read"
    if is_first and found < expect.at_least:
        return f"{found} records, and at least {expect.at_least} are expected"
    for name in expect.required if readable >= JUDGED_LEAST else ():
        missing = sum(record.data.get(name) in (None, "") for record in page.records)
        if missing > MISSING_MOST * readable:
            return f"{name} is missing in {missing} of {readable} records"
    return None


def shares(page: Page) -> dict[str, float]:
    """Return for each field of a page's records in how many of them it has a value."""
    names = sorted({name for record in page.records for name in record.data})
    total = len(page.records) or 1
    return {name: sum(each.data.get(name) not in (None, "") for each in page.records) / total for name in names}
