"""What a process remembers for a while: forms that were sent, and paces that were looked at."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.views.view import Row

KEYS_MAX = 10_000  # forms whose second sending does nothing
SAMPLES_MAX, TRACKS_MAX = 900, 200  # half an hour of a pace; paces


class Keys:
    """The keys of forms that were sent: a double click, or a reload, does nothing more."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def add(self, key: str) -> bool:
        """Return whether a key is new."""
        if key in self._seen:
            return False
        self._seen[key] = None
        if len(self._seen) > KEYS_MAX:
            self._seen.pop(next(iter(self._seen)))
        return True


class Tracks:
    """The paces that were looked at lately, for their charts."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[tuple[float, float | None, float | None]]] = {}

    def add(self, pace: Row, now: int, earlier: Sequence[tuple[float, float]]) -> dict[str, list[float | None]]:
        """Note a pace as it is now; return what was noted of it, after what workers have noted earlier. Beside earlier rates
        stands the limit that is known now."""
        samples = self._samples.setdefault(pace["name"], deque(maxlen=SAMPLES_MAX))
        at = now / 1_000_000
        if not samples or at - samples[-1][0] >= 1:
            samples.append((at, pace["rate_per_second"], pace["limit_per_second"]))
        if len(self._samples) > TRACKS_MAX:
            self._samples.pop(next(iter(self._samples)))
        limit = pace["limit_per_second"]
        whole = [*((at, rate, limit) for at, rate in earlier if at < samples[0][0]), *samples]
        return {
            "at": [each[0] for each in whole],
            "rate": [each[1] for each in whole],
            "limit": [each[2] for each in whole],
        }
