"""How many refusals the limiter may cause, and what bans have taught it."""

from __future__ import annotations

import msgspec

WINDOWS = (60.0, 300.0, 600.0, 3_600.0)  # seconds
UNPROVEN = (1, 1, 2, 4)  # refusals within each window that probes may cause at a service that has shown nothing else
PROOF_SECONDS = 30.0  # a service that bans does so at once: a refusal that is answered normally for so long is survived
FADE_SECONDS = 3 * 86_400.0  # a ban is remembered so long; each further one allows one refusal more
MEMORY_SECONDS = 4 * FADE_SECONDS
KEPT_MOST = 200


class Budget(msgspec.Struct):
    """Refusals of the last hour, the most that were survived within each window, and the most that a ban allows."""

    recent: list[float] = []
    survived: list[int] = msgspec.field(default_factory=lambda: [0] * len(WINDOWS))
    allowed: list[int] | None = None  # after a ban: fewer than preceded it
    banned_at: float = 0.0
    bans: int = 0

    def spend(self, at: float) -> None:
        """Note a refusal."""
        recent = self.recent
        recent.append(at)
        while recent and (recent[0] < at - WINDOWS[-1] or len(recent) > KEPT_MOST):
            del recent[0]

    def count(self, now: float) -> list[int]:
        """Refusals within each window."""
        return [sum(now - seconds < at <= now for at in self.recent) for seconds in WINDOWS]

    def limits(self, now: float) -> list[int]:
        """How many each window may hold at most."""
        proven = [max(least, most + 1) for least, most in zip(UNPROVEN, self.survived, strict=True)]
        if self.allowed is None or not self.remembers(now):
            return proven
        faded = int((now - self.banned_at) / FADE_SECONDS)
        return [min(most, allowed + faded) for most, allowed in zip(proven, self.allowed, strict=True)]

    def free_at(self, now: float) -> float:
        """When one more refusal fits into every window."""
        if not self.recent:
            return now
        free = now
        for seconds, most in zip(WINDOWS, self.limits(now), strict=True):
            most = max(1, most if self.allowed is None else most // 2)  # half of it is kept for what cannot be foreseen
            inside = [at for at in self.recent if at > now - seconds]
            if len(inside) >= most:
                free = max(free, inside[-most] + seconds)
        return free

    def is_spent(self, now: float) -> bool:
        """Whether one more refusal would be more than a window may hold."""
        return any(count >= most for count, most in zip(self.count(now), self.limits(now), strict=True))

    def survive(self, now: float) -> None:
        """The service answers normally: what it was asked to refuse so far led to no ban."""
        last = next((at for at in reversed(self.recent) if now - at >= PROOF_SECONDS), None)
        if last is not None:
            self.survived = [max(pair) for pair in zip(self.survived, self.count(last), strict=True)]

    def remembers(self, now: float) -> bool:
        """Whether the last ban still counts."""
        return self.allowed is not None and now - self.banned_at < MEMORY_SECONDS

    def learn(self, counts: list[int], now: float) -> None:
        """A ban came after so many refusals: never as many again."""
        before = self.limits(now) if self.allowed is not None else counts
        self.allowed = [max(1, min(most, count - 1)) for most, count in zip(before, counts, strict=True)]
        self.survived = [min(most, allowed) for most, allowed in zip(self.survived, self.allowed, strict=True)]
        self.banned_at = now
        self.bans += 1
