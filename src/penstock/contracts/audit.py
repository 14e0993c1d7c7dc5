"""What an operator changed: one row of the audit, written in the transaction of its effect."""

from __future__ import annotations

from typing import Any, NamedTuple

Key = int | str | bytes


class Audit(NamedTuple):
    """One operation of one operator. Commits of the same `id` share one row. `kind` names what `key` finds: the store reads
    it before and after the effect."""

    id: bytes
    at: int
    actor: str
    origin: str
    verb: str
    kind: str
    name: str
    key: Key
    details: dict[str, Any]
