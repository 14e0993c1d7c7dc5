"""An answer that is read piece by piece while it arrives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import httpx2

from penstock.model.errors import Unparsable
from penstock.outbound.bodies import Bounds


class Streamed:
    """The answer of `Client.stream`: its status and headers are there, its body arrives while it is iterated."""

    def __init__(self, response: httpx2.Response, bounds: Bounds, url: str) -> None:
        self.status: int = response.status_code
        self.url = url
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._bounds = bounds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        coding = self.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            shown = coding[:60]
            raise Unparsable(f"The stream of {self.url} has the encoding {shown!r}.", reason="bad_coding", url=self.url)
        stream = self._response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        pieces, size = aiter(stream), 0
        while True:
            async with asyncio.timeout(self._bounds.progress_seconds):
                piece = await anext(pieces, None)
            if piece is None:
                return
            size += len(piece)
            if size > self._bounds.body_bytes:
                why = f"more than {self._bounds.body_bytes:,} bytes"
                raise Unparsable(f"The stream of {self.url} is too large: {why}.", reason="too_large", url=self.url)
            yield piece
