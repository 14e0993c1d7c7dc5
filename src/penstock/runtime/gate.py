"""The gate: lets handlers run side by side, a suspect alone with nothing else in the process, and nothing begin without the
store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Gate:
    """A row whose worker died is delivered alone, so that only it is charged with a second death."""

    def __init__(self) -> None:
        self.closed = False
        self.store_lost = False  # the store is
        self.losses = 0  # how often it was
        self.running = 0
        self.draining = 0  # how many wait for quiet, or for the store
        self.on_draining: set[Callable[[], None]] = set()  # of what runs for long and can end early
        self.on_store_lost: list[Callable[[], object]] = []
        self.on_reopen: list[Callable[[], None]] = []
        self._suspects = 0  # that run, or were claimed and wait for their turn
        self._one = asyncio.Lock()
        self._quiet = asyncio.Event()

    def left(self) -> None:
        """A handler has ended while a suspect waits to run alone."""
        if self.running == 0:
            self._quiet.set()

    async def quiet(self) -> None:
        """Returns when no handler runs."""
        self.draining += 1
        for callback in tuple(self.on_draining):
            callback()
        try:
            while self.running:
                self._quiet.clear()
                await self._quiet.wait()
        finally:
            self.draining -= 1

    def expect(self) -> None:
        """A suspect was claimed, and has to `leave` in the end: what would be claimed meanwhile could only wait as well."""
        self._suspects += 1
        self.closed = True

    async def turn(self) -> None:
        """Returns when nothing else runs, and nothing will until it leaves."""
        await self._one.acquire()
        try:
            await self.quiet()
        except BaseException:
            self._one.release()
            raise

    def leave(self, *, had_turn: bool) -> None:
        if had_turn:
            self._one.release()
        self._suspects -= 1
        self._reopen()

    def set_store_lost(self, away: bool) -> None:
        """What began without the store could save nothing, while others may take it over and begin it too: nothing begins,
        and claims that wait are released as soon as possible."""
        if away == self.store_lost:
            return
        self.store_lost = away
        self.losses += away
        self.draining += 1 if away else -1
        if away:
            self.closed = True
            for callback in (*self.on_draining, *self.on_store_lost):
                callback()
        self._reopen()

    def _reopen(self) -> None:
        if not (self._suspects or self.store_lost):
            self.closed = False
            for callback in self.on_reopen:
                callback()
