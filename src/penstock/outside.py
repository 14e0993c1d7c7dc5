"""An app's ways to what is not in its database: files, pages, services."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.blobs.folder import BlobFolder
from penstock.blobs.lifecycle import Expiry
from penstock.runtime.clock import ClockOf

if TYPE_CHECKING:
    from penstock.gateway.client import Client
    from penstock.gateway.pages import PageCache

BLOBS_EVERY_SECONDS = 3_600.0


class Outside:
    """The part of an app that goes outside. Its clock is the app's."""

    def __init__(self, clock: ClockOf) -> None:
        self._clock = clock
        self._expiring: list[BlobFolder] = []

    def blobs(self, path: str | Path, *, expiries: Sequence[Expiry] = ()) -> BlobFolder:
        """A folder of blobs: bytes under keys, each saved whole or not at all. What `expiries` call too old goes hourly."""
        folder = BlobFolder(path, clock=self._clock, expiries=expiries)
        if expiries:
            self._expiring.append(folder)
        return folder

    def http(self, **options: Any) -> Client:
        """The way out: a client that calls no private address, reads no endless answer, and raises what controllers and
        queues understand. See docs/guide/http-client.md for its options."""
        from penstock.gateway.client import Client  # only where somebody goes out: its libraries take a while to load

        return Client(clock=self._clock, **options)

    def page_cache(self, blobs: BlobFolder, client: Client, **options: Any) -> PageCache:
        """Pages read through a folder of blobs: fetched only where none is kept that is young enough and good."""
        from penstock.gateway.pages import PageCache

        return PageCache(blobs, client, self._clock, **options)

    async def expire_blobs(self) -> None:
        """Removes what is too old, hourly, for as long as the app runs."""
        while self._expiring:
            for folder in self._expiring:
                await folder.expire()
            await asyncio.sleep(BLOBS_EVERY_SECONDS)
