"""Wake-ups between processes on one file: each listens on a datagram socket in a private folder."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import Callable, Collection
from pathlib import Path

from penstock.storage.private import runtime_folder

NAMES_BYTES_MAX = 1_024  # a longer list of queues is sent as "any"
HEARD_AT_ONCE = 64  # datagrams read in one go before other work gets its turn


def folder_for(database: Path) -> Path:
    """Return a short path that every process of this user finds: sockets allow about 100 characters."""
    status = os.stat(database)
    return runtime_folder(hashlib.blake2b(f"{status.st_dev}:{status.st_ino}".encode(), digest_size=8).hexdigest())


class SocketBell:
    def __init__(self, database: Path, worker: int) -> None:
        self._folder = folder_for(database)
        self._own = self._folder / str(worker)
        self._own.unlink(missing_ok=True)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seen_at = -1
        self._others: list[str] = []

    def ring(self, queues: Collection[str]) -> None:
        names = "\n".join(queues).encode()
        if len(names) > NAMES_BYTES_MAX:
            names = b""
        for other in self._neighbours():
            try:
                self._socket.sendto(names, other)
            except ConnectionRefusedError:
                Path(other).unlink(missing_ok=True)  # its owner died without cleaning up
            except OSError:
                pass  # full or gone: it will look by itself within a second

    def _neighbours(self) -> list[str]:
        try:
            changed_at = os.stat(self._folder).st_mtime_ns
            if changed_at != self._seen_at:
                self._others = [entry.path for entry in os.scandir(self._folder) if entry.name != self._own.name]
                self._seen_at = changed_at
        except FileNotFoundError:
            return []  # the last listener took the folder away
        return self._others

    def listen(self, heard: Callable[[set[str]], None]) -> None:
        try:
            self._socket.bind(str(self._own))
        except FileNotFoundError:  # the last listener took the folder away a moment ago
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._socket.bind(str(self._own))
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket.fileno(), self._read, heard)

    def _read(self, heard: Callable[[set[str]], None]) -> None:
        queues: set[str] = set()
        for _ in range(HEARD_AT_ONCE):
            try:
                names = self._socket.recv(NAMES_BYTES_MAX)
            except OSError:
                break
            queues.update(names.decode(errors="replace").split("\n"))
        heard(set() if "" in queues else queues)

    def close(self) -> None:
        if self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._own.unlink(missing_ok=True)
        self._socket.close()
        try:
            self._folder.rmdir()
        except OSError:
            pass  # others still listen there
