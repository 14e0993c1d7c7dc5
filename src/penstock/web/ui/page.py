"""A page: its address, the role it asks for, and the one function that feeds its HTML, its JSON and its CSV."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.contracts.history import SettledCount
from penstock.model.errors import PenstockError, StoreError
from penstock.model.sql_files import load
from penstock.views.view import View
from penstock.web.ui.access import Role
from penstock.web.ui.reading import PageReading

SQL = load("penstock.web.ui", "pages.sql")
Facts = dict[str, Any]  # as `?format=json` prints them

MINUTE = 60_000_000
RECENT_MINUTES = 60
LISTED = 50  # rows of a list
BEFORE_ALL = 2**62  # a time that lies before nothing


class NoSuchThing(PenstockError):
    """There is no such thing."""


class PageFailed(PenstockError):
    """A function of the app that this page shows has failed. The log has the traceback."""


@dataclass(frozen=True, slots=True)
class PageLook:
    """One look at a page: what is read from, the parameters of its address, and who looks."""

    reading: PageReading
    role: Role
    query: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    fields: Sequence[tuple[str, str]] = ()  # the parameters again: one may be there several times
    jobs: Sequence[Any] = ()  # bulk replays of this process
    dashboard_rows: int = 0  # that all pages of this process have read

    @property
    def ids(self) -> list[str]:
        return [value for name, value in self.fields if name == "id"]

    @property
    def now(self) -> int:
        return self.reading.now()

    def number(self, name: str, usual: int, most: int = BEFORE_ALL) -> int:
        """Return a parameter as a number of at least 0, or the usual one where it is none."""
        text = self.query.get(name, "")
        return min(int(text), most) if text.isascii() and text.isdecimal() and len(text) < 20 else usual

    def text(self, name: str) -> str | None:
        """Return a parameter; None where it is missing or empty."""
        return self.query.get(name, "").strip() or None


Read = Callable[[PageLook], Awaitable[Facts]]


@dataclass(frozen=True, slots=True)
class Page:
    """`listing` is the view of the rows that are in the facts under its name: those of the CSV. `every` is how often an open
    page is read again, in seconds; 0 is never. The page of an app is read by its own functions, on the event loop."""

    path: str
    title: str
    read: Read
    template: str
    role: Role = Role.VIEWER
    listing: View | None = None
    every: float = 0.0
    views: Mapping[str, Any] = field(default_factory=dict)
    of_app: Callable[[PageLook], Awaitable[Facts]] | None = None
    heading: str = ""  # of the menu above the page of an app


def continued(look: PageLook, times: Sequence[int], index: int) -> dict[str, int]:
    """Return the parameters of the page that begins with this row of a list by time. Rows of one time, such as runs that one
    unit started, are told apart by how many of them were shown."""
    at = times[index]
    earlier = look.number("skip", 0) if at == look.number("before", -1) else 0
    return {"before": at, "skip": earlier + sum(each == at for each in times[:index])}


async def settled(look: PageLook, minutes: int = RECENT_MINUTES) -> list[SettledCount]:
    """Return what deliveries of the last minutes came to; nothing where the history cannot be read."""
    try:
        return await look.reading.ask(lambda file: file.settled(look.now - minutes * MINUTE, look.now))
    except StoreError:
        return []


def per_minute(
    counts: Sequence[SettledCount], now: int, statuses: Sequence[str], minutes: int = RECENT_MINUTES
) -> list[int]:
    """Return one number a minute, oldest first."""
    last = now // MINUTE * MINUTE
    found = dict.fromkeys(range(last - (minutes - 1) * MINUTE, last + MINUTE, MINUTE), 0)
    for each in counts:
        if each.status in statuses and each.minute in found:
            found[each.minute] += each.messages
    return list(found.values())
