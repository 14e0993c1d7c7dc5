"""The one limit for all requests of the enrichment that are under way: whoever comes when it is reached waits its turn."""

from __future__ import annotations

import asyncio
from collections import deque


class Outbound:
    """`async with outbound:` around a request. The first to wait is the first to go."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.under_way = 0
        self.peak = 0  # the most there have been at once
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self.under_way < self.most:
            self._take()
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # it had its turn already, and hands it on
            raise

    async def __aexit__(self, *_: object) -> None:
        self._leave()

    def _take(self) -> None:
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)

    def _leave(self) -> None:
        """A place that somebody waits for is never free in between: nobody can slip in."""
        self.under_way -= 1
        while self._waiting and self.under_way < self.most:
            first = self._waiting.popleft()
            if not first.done():
                self._take()
                first.set_result(None)
