"""How long blobs are kept: by the prefix of their key, and their age."""

from __future__ import annotations

from dataclasses import dataclass

DAY_SECONDS = 86_400
EXPIRED_MAX = 1_000  # removed in one go


@dataclass(frozen=True, slots=True)
class Expiry:
    """Blobs whose key begins with the prefix go after so many days: `Expiry("app/", days=30)`."""

    prefix: str
    days: float

    @property
    def seconds(self) -> float:
        """How old a blob may become."""
        return self.days * DAY_SECONDS
