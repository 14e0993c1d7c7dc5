"""Pages kept in a folder of blobs: read from there while they are young enough, and only if they were good."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from penstock.contracts.clock import Clock
from penstock.model.errors import Unparsable
from penstock.model.times import MICROS, iso_z, to_micros
from penstock.outbound.answers import redacted_url, text_of
from penstock.outbound.client import Client

if TYPE_CHECKING:
    from penstock.blobs.folder import BlobFolder

MAX_AGE_SECONDS = 86_400.0  # long enough for every retry of one message, too short for a refresh
DEBUG_PREFIX = "debug/"


@dataclass(frozen=True, slots=True)
class Page:
    """A page and when it was fetched. `cached` tells whether that was just now."""

    key: str
    body: bytes = field(repr=False)
    content_type: str
    scraped_at: str
    cached: bool

    def text(self) -> str:
        return text_of(self.body, self.content_type)


class PageCache:
    """Reads pages through the blobs. Only what was answered with 2xx and found good is ever read again."""

    def __init__(
        self,
        blobs: BlobFolder,
        client: Client,
        clock: Clock,
        *,
        max_age: float = MAX_AGE_SECONDS,
        debug: str = DEBUG_PREFIX,
    ) -> None:
        self._blobs = blobs
        self._client = client
        self._clock = clock
        self._max_age = max_age
        self._debug = debug

    async def get(
        self,
        url: str,
        *,
        key: str,
        max_age: float | None = None,
        bypass: bool = False,
        good: Callable[[Page], bool] | None = None,
        headers: Mapping[str, str] | None = None,
        robots: bool = False,
        refusals: Set[int] = frozenset(),
    ) -> Page:
        """The page under the key if it is at most `max_age` seconds old, else the page at the URL.

        A refresh passes `bypass=True`. A page that is not `good` is put aside for a look, and Unparsable is raised.
        """
        oldest = self._max_age if max_age is None else max_age
        if not bypass and oldest > 0 and (kept := await self._kept(key, oldest)) and (good is None or good(kept)):
            return kept
        answer = await self._client.page(url, headers=headers, robots=robots, refusals=refusals)
        content_type = answer.headers.get("content-type", "text/html")
        page = Page(key, answer.body, content_type, iso_z(self._clock.now()), cached=False)
        if good is None or good(page):
            await self._put(key, page, answer.url)
            return page
        await self._aside(page, answer.url)
        shown = redacted_url(url)
        raise Unparsable(
            f"{shown} failed its check; see the blob {self._debug}{key}.",
            reason="bad_page",
            status=answer.status,
            url=shown,
        )

    async def reject(self, page: Page) -> None:
        """Puts a page aside that was found bad only later, so that the next read fetches it again."""
        await self._aside(page, "")

    async def _kept(self, key: str, max_age: float) -> Page | None:
        blob = await self._blobs.read(key)
        if blob is None or (scraped_at := blob.metadata.get("scraped_at")) is None:
            return None
        age = self._clock.now() - to_micros(datetime.fromisoformat(scraped_at))
        if not 0 <= age <= max_age * MICROS:
            return None
        return Page(key, blob.content, blob.content_type or "text/html", scraped_at, cached=True)

    async def _aside(self, page: Page, url: str) -> None:
        await self._put(self._debug + page.key, page, url)
        await self._blobs.delete(page.key)

    async def _put(self, key: str, page: Page, url: str) -> None:
        metadata = {"scraped_at": page.scraped_at, "url": url}
        await self._blobs.put(key, page.body, content_type=page.content_type, metadata=metadata)
