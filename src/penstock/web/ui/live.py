"""Keeps open pages current: one reader for all that watch a page, and none where no page is visible.

A browser holds a stream for the page it shows. Every two seconds the database is asked whether anything was committed; if so,
each page that is watched is read once, and its watchers receive whether it changed. They then fetch it from what was read.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec

from penstock.contracts.store import Reader
from penstock.model.errors import PenstockError
from penstock.web.ui.page import Facts
from penstock.web.ui.reading import PageCost, PageSource

TICK_SECONDS = 2.0
BEAT_SECONDS = 15.0  # without an event: a proxy would close a silent stream
STREAMS_MAX = 64
STREAMS_EACH_MAX = 4  # of one session: a browser opens six connections to a host, and needs some for pages
ADDRESSES_MAX = 100
VERSION = "pragma data_version"

_log = logging.getLogger("penstock.web.ui")

Read = Callable[[], Awaitable[tuple[Facts, PageCost]]]


@dataclass(slots=True)
class Watched:
    """A page that visitors look at: how it is read, what it last said, and the streams that wait for the next."""

    read: Read
    every: float
    due: float = 0.0
    digest: str = ""
    version: object = None  # of the database when it was last read
    watchers: set[asyncio.Event] = field(default_factory=set)


class Live:
    def __init__(self, source: PageSource) -> None:
        self._source = source
        self._watched: dict[str, Watched] = {}
        self._recent: dict[str, tuple[float, Facts, PageCost]] = {}
        self._reading: dict[str, asyncio.Future[tuple[Facts, PageCost]]] = {}  # under way
        self._sessions: Counter[str] = Counter()
        self._poller: asyncio.Task[None] | None = None
        self.is_over = False

    @property
    def streams(self) -> int:
        return self._sessions.total()

    def has_room(self, session: str) -> bool:
        is_known = self.streams < STREAMS_MAX and self._sessions[session] < STREAMS_EACH_MAX
        return is_known and not self.is_over and len(self._watched) < ADDRESSES_MAX

    def close(self) -> None:
        """End every stream: the server stops."""
        self.is_over = True
        for watched in self._watched.values():
            for event in watched.watchers:
                event.set()

    # -- what was read lately -------------------------------------------------------------------------------

    async def recent(self, address: str, read: Read) -> tuple[Facts, PageCost]:
        """Return the facts of a page, read at most once in a tick however many ask."""
        now = asyncio.get_running_loop().time()
        found = self._recent.get(address)
        if found is not None and now - found[0] < TICK_SECONDS:
            return found[1], found[2]
        if address not in self._reading:
            self._reading[address] = asyncio.ensure_future(self._read(address, read))
        return await asyncio.shield(self._reading[address])

    async def _read(self, address: str, read: Read) -> tuple[Facts, PageCost]:
        try:
            facts, spent = await read()
            self._keep(address, facts, spent)
            return facts, spent
        finally:
            self._reading.pop(address, None)

    def forget(self) -> None:
        """Drop what was read: an operator has changed something."""
        self._recent.clear()
        for watched in self._watched.values():
            watched.due = 0.0

    def _keep(self, address: str, facts: Facts, spent: PageCost) -> None:
        now = asyncio.get_running_loop().time()
        self._recent = {name: each for name, each in self._recent.items() if now - each[0] < TICK_SECONDS}
        self._recent[address] = (now, facts, spent)

    # -- streams --------------------------------------------------------------------------------------------

    async def stream(self, address: str, session: str, every: float, read: Read) -> AsyncIterator[str]:
        """Yield server-sent events until the client leaves: `changed` with a digest, `over` when the server stops."""
        watched = self._watched.setdefault(address, Watched(read, max(every, TICK_SECONDS)))
        event = asyncio.Event()
        watched.watchers.add(event)
        self._sessions[session] += 1
        if self._poller is None or self._poller.done():
            self._poller = asyncio.ensure_future(self._poll())
        try:
            yield "retry: 2000\n\n"
            while not self.is_over:
                try:
                    async with asyncio.timeout(BEAT_SECONDS):
                        await event.wait()
                except TimeoutError:
                    yield ": here\n\n"
                    continue
                event.clear()
                if not self.is_over:
                    yield f"event: changed\nid: {watched.digest}\ndata: {watched.digest}\n\n"
            yield "event: over\ndata: the server stops\n\n"
        finally:
            self._sessions[session] -= 1
            watched.watchers.discard(event)
            if not watched.watchers:
                self._watched.pop(address, None)

    async def _poll(self) -> None:
        """Read what is watched while there are watchers."""
        reader: Reader | None = None
        try:
            reader = await self._open()
            while self._watched and not self.is_over:
                await asyncio.sleep(TICK_SECONDS)
                await self._look(await self._version(reader))
        except PenstockError as error:
            _log.warning("open pages are not kept current: %s", error)
        finally:
            if reader is not None:
                reader.close()

    async def _open(self) -> Reader | None:
        target = self._source.target
        return None if target.file is None else target.store().open_reader()

    async def _version(self, reader: Reader | None) -> object:
        """Return a value that changes with each commit of another connection; None where there is no such thing."""
        if reader is None:
            return None
        found = await asyncio.to_thread(lambda: reader.read(VERSION, {}, rows_max=1))
        return found.values[0][0]

    async def _look(self, version: object) -> None:
        now = asyncio.get_running_loop().time()
        for address, watched in [*self._watched.items()]:
            if now < watched.due or (version is not None and version == watched.version):
                continue
            watched.due, watched.version = now + watched.every - TICK_SECONDS / 2, version
            try:
                facts, spent = await watched.read()
            except PenstockError as error:
                _log.warning("an open page could not be read: %s", error)
                continue
            self._keep(address, facts, spent)
            digest = blake2b(msgspec.json.encode(facts, enc_hook=str), digest_size=8).hexdigest()
            if digest != watched.digest:
                watched.digest = digest
                for event in watched.watchers:
                    event.set()
