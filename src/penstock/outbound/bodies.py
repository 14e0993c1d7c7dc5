"""Reads a body within bounds: a number of bytes, a factor of unpacking, and a time without progress."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

import httpx2

from penstock.model.errors import Unavailable, Unparsable

ACCEPTED = "gzip, deflate"  # what is unpacked here, piece by piece; other codings come unasked and are refused
PIECE_BYTES = 256 * 1024  # unpacked at once
RATIO_FLOOR_BYTES = 1_000_000  # a small body may be as dense as it likes
MEMBERS_MAX = 1_000  # gzip files one behind the other; each costs a copy of the rest
_GZIP = zlib.MAX_WBITS | 16


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a call may take. Every one is meant to be far above what an honest server needs."""

    body_bytes: int = 10_000_000
    ratio: int = 200  # unpacked to packed; text rarely reaches 20
    headers: int = 200
    header_bytes: int = 64 * 1024
    redirects: int = 5
    total_seconds: float = 30.0
    progress_seconds: float = 15.0  # until the headers are there, and between two pieces of the body


async def read_body(
    response: httpx2.Response, bounds: Bounds, *, bytes_max: int, url: str, truncate: bool = False
) -> bytes:
    """The unpacked body. Beyond `bytes_max` it is cut if `truncate`, otherwise Unparsable is raised."""
    unpacker = _unpacker(response.headers.get("content-encoding", ""), url)
    body, packed = bytearray(), 0
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    pieces, loop = _iterated(stream), asyncio.get_running_loop()
    async with aclosing(pieces), asyncio.timeout(bounds.progress_seconds) as limit:
        async for piece in pieces:
            packed += len(piece)
            try:
                for unpacked in unpacker.feed(piece):
                    body += unpacked
                    if len(body) > bytes_max:
                        if truncate:
                            return bytes(body[:bytes_max])
                        raise _too_large(f"more than {bytes_max:,} bytes", url)
                    if len(body) > max(RATIO_FLOOR_BYTES, packed * bounds.ratio):
                        raise _too_large(f"compressed more than {bounds.ratio} times", url)
            except zlib.error as error:
                raise Unparsable(f"The body of {url} is damaged: {error}.", reason="bad_coding", url=url) from error
            # Packed bytes that unpack to nothing would otherwise come for ever.
            if packed > bytes_max:
                if truncate:
                    break
                raise _too_large(f"more than {bytes_max:,} bytes", url)
            limit.reschedule(loop.time() + bounds.progress_seconds)  # there was progress
        if not unpacker.whole and not truncate:
            raise Unavailable(f"The body of {url} was cut off.", reason="cut_off", url=url)
    return bytes(body)


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
            yield bytes(piece)


def check_headers(headers: httpx2.Headers, bounds: Bounds, *, url: str) -> None:
    if len(headers.raw) > bounds.headers or sum(len(name) + len(value) for name, value in headers.raw) > (
        bounds.header_bytes
    ):
        raise Unparsable(f"{url} was answered with too many headers.", reason="too_many_headers", url=url)


async def _iterated(stream: httpx2.AsyncByteStream) -> AsyncGenerator[bytes]:
    async for piece in stream:
        yield piece


class _Plain:
    whole = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        yield piece


class _Zipped:
    """Unpacks gzip, and deflate with or without the frame that the standard asks for and half of the servers leave out."""

    def __init__(self, *, gzip: bool) -> None:
        self._gzip = gzip
        self._inflate = zlib.decompressobj(_GZIP) if gzip else None
        self._head = b""
        self._members = 1
        self.whole = True  # no body at all is one

    def feed(self, piece: bytes) -> Iterator[bytes]:
        if self._inflate is None:
            self._head += piece
            self.whole = False
            if len(self._head) < 2:
                return
            piece, framed = self._head, self._head[0] & 15 == 8 and int.from_bytes(self._head[:2], "big") % 31 == 0
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)
        while piece:
            if self._inflate.eof:
                if not self._gzip or piece[:1] != b"\x1f":
                    return  # padding
                self._members += 1
                if self._members > MEMBERS_MAX:
                    raise zlib.error(f"more than {MEMBERS_MAX:,} members")
                self._inflate = zlib.decompressobj(_GZIP)
            while unpacked := self._inflate.decompress(piece, PIECE_BYTES):
                yield unpacked
                piece = self._inflate.unconsumed_tail
            self.whole = self._inflate.eof
            piece = self._inflate.unused_data


def _unpacker(codings: str, url: str) -> _Plain | _Zipped:
    names = [name for name in (part.strip().lower() for part in codings.split(",")) if name not in ("", "identity")]
    match names:
        case []:
            return _Plain()
        case ["gzip" | "x-gzip"]:
            return _Zipped(gzip=True)
        case ["deflate"]:
            return _Zipped(gzip=False)
        case _:
            # Packed twice, or in a way that was not asked for.
            shown = codings[:60]
            raise Unparsable(f"The body of {url} has the unsupported encoding {shown!r}.", reason="bad_coding", url=url)


def _too_large(why: str, url: str) -> Unparsable:
    return Unparsable(f"The body of {url} is too large: {why}.", reason="too_large", url=url)
