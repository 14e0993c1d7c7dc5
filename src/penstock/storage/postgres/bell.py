"""Wake-ups between processes on one database: LISTEN and NOTIFY, on a connection and in a thread of their own."""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
from collections.abc import Callable, Collection
from typing import Any

import psycopg

from penstock.model.errors import PenstockError
from penstock.storage.postgres.connection import PostgresSettings, connect

NAMES_BYTES_MAX = 7_000  # what one notification holds; a longer list of queues is sent as "any"
AGAIN_SECONDS = 1.0
NOTIFY_EVERY_SECONDS = 0.003
RING = "select pg_notify('penstock', %s)"


class NotifyBell:
    """Notices are given outside of commits: inside one they would make all commits of the server wait for each other."""

    def __init__(self, settings: PostgresSettings, worker: int) -> None:
        self._settings = settings
        self._own = f"{worker}\n"
        self._rung: set[str] = set()
        self._lock = threading.Lock()
        self._wake, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard: Callable[[set[str]], None] | None = None
        self._closed = False
        self._quiet_until = 0.0  # after a notice
        self._thread: threading.Thread | None = None

    def ring(self, queues: Collection[str]) -> None:
        with self._lock:
            self._rung.update(queues or {""})
        self._start()
        self._nudge()

    def listen(self, heard: Callable[[set[str]], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = heard
        self._start()
        self._nudge()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="penstock-bell", daemon=True)
            self._thread.start()

    def _nudge(self) -> None:
        try:
            os.write(self._woken, b".")
        except BlockingIOError:
            pass  # it is woken already

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._nudge()
            self._thread.join()
        os.close(self._wake)
        os.close(self._woken)

    # -- in the thread ------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while self._has_work():
            try:
                with connect(self._settings, name="penstock bell") as connection:
                    connection.execute("listen penstock")
                    self._tell({""})  # what was rung for while no process listened
                    while self._has_work():
                        self._turn(connection)
            except (psycopg.Error, PenstockError):
                if self._closed:
                    return
                time.sleep(AGAIN_SECONDS)

    def _has_work(self) -> bool:
        """A process that sends something and ends rings before it does."""
        return not self._closed or bool(self._rung)

    def _turn(self, connection: psycopg.Connection[Any]) -> None:
        """Hear at once, and notify at most every few milliseconds: many sends in a row cost one notice."""
        quiet = self._quiet_until - time.perf_counter()
        if quiet > 0:
            select.select([connection.fileno()], [], [], quiet)
        else:
            select.select([connection.fileno(), self._wake], [], [])
            self._notify(connection)
        # A timeout would keep the processor busy for its last millisecond.
        for notice in connection.notifies(timeout=0):
            if not notice.payload.startswith(self._own):
                self._tell(set(notice.payload.partition("\n")[2].split("\n")))

    def _notify(self, connection: psycopg.Connection[Any]) -> None:
        try:
            os.read(self._wake, 4_096)
        except BlockingIOError:
            pass
        with self._lock:
            rung, self._rung = self._rung, set()
        if rung:
            names = "\n".join(sorted(rung)) if "" not in rung else ""
            if len(names.encode()) > NAMES_BYTES_MAX:
                names = ""
            connection.execute(RING, [self._own + names])
            self._quiet_until = time.perf_counter() + NOTIFY_EVERY_SECONDS

    def _tell(self, queues: set[str]) -> None:
        if self._loop is not None and self._heard is not None:
            try:
                self._loop.call_soon_threadsafe(self._heard, set() if "" in queues else queues)
            except RuntimeError:
                self._closed = True  # the loop is closed: no listener is left
