"""A gate that stays shut for a while: it knows when it was shut and for how long, so a wrong clock cannot lengthen it."""

from __future__ import annotations

import msgspec


class Cooldown(msgspec.Struct, frozen=True):
    """Times are milliseconds since 1970. A gate that was never shut has three zeros."""

    started_at: int = 0
    duration_ms: int = 0
    until: int = 0

    @classmethod
    def trigger(cls, now_ms: int, duration_ms: int) -> Cooldown:
        return cls(now_ms, duration_ms, now_ms + duration_ms)

    def is_active(self, now_ms: int) -> bool:
        return self.remaining_ms(now_ms) > 0

    def remaining_ms(self, now_ms: int) -> int:
        return max(0, min(self.until - now_ms, self.duration_ms))

    def remaining_seconds(self, now_ms: int) -> int:
        """Rounded up, so that it says 0 only when it is over."""
        return -(-self.remaining_ms(now_ms) // 1_000)

    def seen(self, now_ms: int) -> Cooldown:
        """The gate on a clock that shows this: if the clock was set back, it is shut from now on for its length at most."""
        return self if now_ms >= self.started_at else Cooldown.trigger(now_ms, self.duration_ms)

    def to_json(self) -> bytes:
        return msgspec.json.encode(self)

    @classmethod
    def from_json(cls, saved: bytes | str) -> Cooldown:
        return msgspec.json.decode(saved, type=cls)
