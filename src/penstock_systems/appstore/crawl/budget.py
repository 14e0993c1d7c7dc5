"""The time of one cycle: up to a moment new work begins, and a little later whatever runs is cut off."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from penstock_systems.appstore.app import app


class Window(NamedTuple):
    """Seconds from the start of a cycle: what begins after `begin` would not be done in time; `cut` leaves time to save."""

    begin: float
    cut: float


PLATFORM = Window(25.0, 28.0)  # of the 30 seconds that the platform gives a cron run
WHOLE = Window(285.0, 292.0)  # of the five minutes until the next cycle: the crawl works as long as the pace allows
WINDOW = PLATFORM if app.config.profile.startswith("cloudflare") else WHOLE


class Budget:
    """Starts when it is made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    @property
    def is_open(self) -> bool:
        """Whether something new may begin."""
        return self._loop.time() - self._began < WINDOW.begin

    def cut(self) -> asyncio.Timeout:
        """Around one call: raises TimeoutError inside it when the cycle must end."""
        return asyncio.timeout_at(self._began + WINDOW.cut)

    async def pause(self, seconds: float) -> bool:
        """Waits, and says whether something new may begin after it. There is no waiting for nothing."""
        if self._loop.time() - self._began + seconds >= WINDOW.begin:
            return False
        await asyncio.sleep(seconds)
        return True
