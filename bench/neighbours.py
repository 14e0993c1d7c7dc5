"""How much of the machine others used meanwhile: a crowded one hurts two threads that work together before it hurts one."""

from __future__ import annotations

import os
import time
from pathlib import Path

STAT = Path("/proc/stat")


class Neighbours:
    """Started when it is made. Where there is no /proc, nothing is known."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._busy = _busy_seconds()

    def cores(self) -> float | None:
        """The cores that were busy with something else, on average since the start."""
        now = _busy_seconds()
        if now is None or self._busy is None:
            return None
        return max(0.0, (now - self._busy) / (time.perf_counter() - self._began))


def _busy_seconds() -> float | None:
    """The seconds that all cores together have worked for anybody but this process, children included."""
    try:
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, STAT.read_text("ascii").split()[1:9])
    except (OSError, ValueError):
        return None
    ticks = user + nice + system + irq + softirq + steal
    return ticks / os.sysconf("SC_CLK_TCK") - sum(os.times()[:4])
