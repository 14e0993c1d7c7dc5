"""The gate: lets handlers run side by side, and a suspect run alone with nothing else in the process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Gate:
    """A row whose worker died is delivered alone, so that a second death is its own and nobody else's."""

    def __init__(self) -> None:
        self.closed = False
        self.running = 0
        self.watched = 0  # how many wait for quiet
        self.on_watch: set[Callable[[], None]] = set()  # of what runs for long and can end early
        self._suspects = 0  # that run or wait for their turn
        self._one = asyncio.Lock()
        self._quiet = asyncio.Event()
        self._reopened: list[Callable[[], None]] = []

    def left(self) -> None:
        """A handler has ended while somebody waits for quiet."""
        if self.running == 0:
            self._quiet.set()

    async def quiet(self) -> None:
        """Returns when no handler runs."""
        self.watched += 1
        for told in tuple(self.on_watch):
            told()
        try:
            while self.running:
                self._quiet.clear()
                await self._quiet.wait()
        finally:
            self.watched -= 1

    def when_reopened(self, callback: Callable[[], None]) -> None:
        self._reopened.append(callback)

    async def turn(self) -> None:
        """Returns when nothing else runs, and nothing will until `over`."""
        self._suspects += 1
        self.closed = True
        try:
            await self._one.acquire()
        except BaseException:
            self._leave()
            raise
        try:
            await self.quiet()
        except BaseException:
            self.over()
            raise

    def over(self) -> None:
        self._one.release()
        self._leave()

    def _leave(self) -> None:
        """Stays closed while another suspect waits: what would be claimed now could only wait as well."""
        self._suspects -= 1
        if not self._suspects:
            self.closed = False
            for callback in self._reopened:
                callback()
