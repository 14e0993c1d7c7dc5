"""What a group commit does besides its units and claims."""

from __future__ import annotations

from typing import NamedTuple


class Chores(NamedTuple):
    """Take back leases that have lapsed; turn timers that are due into messages."""

    sweep: bool = False
    fire: bool = False
