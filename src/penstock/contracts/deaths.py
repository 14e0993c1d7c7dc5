"""What is told when a message dies, by whoever it dies: a handler, a client outside, a worker's death."""

from __future__ import annotations

from typing import NamedTuple


class Death(NamedTuple):
    queue: str
    id: bytes
    type: str
    source: str
    attempts: int
    reason: str
    error: str | None
    correlation_id: bytes
