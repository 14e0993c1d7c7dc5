"""What a connector yields, page by page, and what the collector makes of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from penstock.model.errors import PenstockError

RECORDS_MAX = 5_000  # on one page
RECORD_BYTES_MAX = 256_000
Verdict = Literal["ok", "empty", "blocked", "changed", "failed", "skipped"]


class Blocked(PenstockError):
    """The source refuses programs: a challenge page, a redirect to another host, a page where data was expected."""


class Changed(PenstockError):
    """The source answers in another shape than the connector reads. Adapt the connector."""


class Unchanged(PenstockError):
    """The source has nothing that was not read before."""


@dataclass(frozen=True, slots=True)
class Record:
    """One item of a source. `data` is what is compared with the last time; `raw` is kept beside it."""

    id: str
    data: Mapping[str, Any]
    url: str = ""
    raw: Any = None
    source: str = ""  # the connector's name, if given; a record of another source is refused
    fetched_at: str = ""  # set by the collector where it is empty

    @property
    def digest(self) -> str:
        """A digest of `data` and the URL: another one means that the record changed."""
        body = msgspec.json.encode([self.url, self.data], order="sorted")
        return hashlib.blake2b(body, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Page:
    """Records that are saved in one commit with the cursor. A cursor of None keeps the saved one."""

    records: Sequence[Record]
    cursor: str | None = None
    complete: bool = False  # this page and those before it are all that the source has now
    read: int | None = None  # records on the page, with those that the cursor left out
    unreadable: int = 0  # records that could not be read


@dataclass(frozen=True, slots=True)
class Change:
    """A record that is new, changed, gone or back. `before` is its data when it was last saved."""

    kind: Literal["new", "changed", "gone", "back"]
    source: str
    record: Record
    before: Mapping[str, Any] | None = None
    is_first_run: bool = False  # of the source: everything is new then


@dataclass(slots=True)
class Tally:
    """What one run counted."""

    candidates: int = 0
    read: int = 0
    inserted: int = 0
    changed: int = 0
    gone: int = 0
    back: int = 0
    pages: int = 0
    requests: int = 0
    refused: int = 0
    unchanged: bool = False  # the source said so, or sent the same bytes
    cursor: str | None = None
    shares: dict[str, float] = field(default_factory=dict)  # of the first page's records, by field
