"""A TCP proxy between a process and its server that can be told to stall, to cut, or to do something to what passes."""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Callable
from urllib.parse import urlsplit

CHUNK_BYTES = 65_536
# Given the link and what one side has sent: what the other side is to get.
Passing = Callable[["Link", bytes], bytes]


class Link:
    """One connection through the proxy."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server

    def close(self) -> None:
        self.client.close()
        self.server.close()


class Proxy:
    """Serves in a thread of its own until it is closed. `address` is a database's, and `url` the same through the proxy."""

    def __init__(self, address: str, *, to_server: Passing | None = None, to_client: Passing | None = None) -> None:
        parts = urlsplit(address)
        self._there = (parts.hostname or "", parts.port or 5432)
        self._passing = (to_server or _unchanged, to_client or _unchanged)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.url = parts._replace(netloc=f"{parts.username}@127.0.0.1:{self._door.getsockname()[1]}").geturl()
        self._links: list[Link] = []
        self._selector = selectors.DefaultSelector()
        self._wake, self._woken = os.pipe()
        self._lock = threading.Lock()
        self._stalled = self._cut = self._closed = False
        self._thread = threading.Thread(target=self._serve, name="proxy", daemon=True)
        self._thread.start()

    # -- what a test does with it -------------------------------------------------------------------------

    def stall(self) -> None:
        """Nothing passes any more, in either direction, and nobody is told."""
        self._tell(stalled=True)

    def cut(self) -> None:
        """All connections end, and new ones do so at once."""
        self._tell(cut=True)

    def heal(self) -> None:
        self._tell()

    def close(self) -> None:
        self._closed = True
        self._tell(cut=True)
        self._thread.join()
        for link in self._links:
            link.close()
        self._door.close()
        os.close(self._wake)
        os.close(self._woken)

    def _tell(self, *, stalled: bool = False, cut: bool = False) -> None:
        with self._lock:
            self._stalled, self._cut = stalled, cut
        os.write(self._woken, b".")

    # -- in the thread ------------------------------------------------------------------------------------

    def _serve(self) -> None:
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._selector.register(self._door, selectors.EVENT_READ)
        while not self._closed:
            for key, _ in self._selector.select():
                if key.fileobj == self._wake:
                    os.read(self._wake, CHUNK_BYTES)
                    self._obey()
                elif key.fileobj is self._door:
                    self._accept()
                elif not self._stalled and key.data in self._links:
                    self._pass(key.data, key.fileobj)
        self._selector.close()

    def _obey(self) -> None:
        for link in list(self._links):
            if self._cut:
                self._end(link)
            else:
                self._watch(link, watched=not self._stalled)

    def _accept(self) -> None:
        client, _ = self._door.accept()
        try:
            server = socket.create_connection(self._there, timeout=5)
        except OSError:
            client.close()
            return
        link = Link(client, server)
        if self._cut:
            link.close()
            return
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._links.append(link)
        self._watch(link, watched=not self._stalled)

    def _watch(self, link: Link, *, watched: bool) -> None:
        for side in (link.client, link.server):
            known = side in self._selector.get_map()
            if watched and not known:
                self._selector.register(side, selectors.EVENT_READ, link)
            elif known and not watched:
                self._selector.unregister(side)

    def _pass(self, link: Link, side: object) -> None:
        giving, taking = (link.client, link.server) if side is link.client else (link.server, link.client)
        try:
            data = giving.recv(CHUNK_BYTES)
            if data:
                passed = self._passing[giving is link.server](link, data)
                taking.sendall(passed)
        except OSError:
            data = b""
        if not data:
            self._end(link)

    def _end(self, link: Link) -> None:
        if link in self._links:
            self._watch(link, watched=False)
            self._links.remove(link)
            link.close()


def _unchanged(link: Link, data: bytes) -> bytes:
    return data
