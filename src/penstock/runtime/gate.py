"""The gate: lets handlers run side by side, and a suspect run alone with nothing else in the process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Gate:
    """A row whose worker died is delivered alone, so that a second death is its own and nobody else's."""

    def __init__(self) -> None:
        self.closed = False
        self.running = 0
        self.watched = 0  # how many wait for quiet
        self.on_watch: set[Callable[[], None]] = set()  # of what runs for long and can end early
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

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        async with self._one:
            self.closed = True
            try:
                await self.quiet()
                yield
            finally:
                self.closed = False
                for callback in self._reopened:
                    callback()
