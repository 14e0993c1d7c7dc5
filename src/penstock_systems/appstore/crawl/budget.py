"""The time of one cycle: up to a moment new work begins, and a little later whatever runs is cut off."""

from __future__ import annotations

import asyncio

WINDOW_SECONDS = 30.0  # what a platform gives a cron run
BEGIN_SECONDS = 25.0  # what begins later would not be done in time
CUT_SECONDS = 28.0  # the rest of the window is for saving


class Budget:
    """Starts when it is made."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    @property
    def is_open(self) -> bool:
        """Whether something new may begin."""
        return self._loop.time() - self._began < BEGIN_SECONDS

    def cut(self) -> asyncio.Timeout:
        """Around one call: raises TimeoutError inside it when the cycle must end."""
        return asyncio.timeout_at(self._began + CUT_SECONDS)

    async def pause(self, seconds: float) -> bool:
        """Waits, and says whether something new may begin after it. There is no waiting for nothing."""
        if self._loop.time() - self._began + seconds >= BEGIN_SECONDS:
            return False
        await asyncio.sleep(seconds)
        return True
