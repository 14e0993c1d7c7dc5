"""What a peer has to offer to be measured: its settings, stated, and the few verbs of a queue.

Only the standard library may be imported at the top of a peer's file: the programme that compares them reads the settings
without having the peers installed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

Job = dict[str, Any]  # number, url, title and sent_at
Arrived = Callable[[int, float], None]  # a handler calls it first of all, with the job's number and sent_at


@dataclass(frozen=True, slots=True)
class Settings:
    """`documentation` is where they were taken from. `share_percent` is what this peer drained of the raw SQLite loop's
    pace when it was known to be set up right: one that reaches less than half of it has probably lost its settings.
    `share_seen` is how far that figure went up and down, where it went far."""

    name: str
    package: str
    store: str
    durability: str
    setup: str
    documentation: tuple[str, ...]
    share_percent: float
    share_seen: tuple[float, float] | None = None
    batches: bool = False
    synced: bool = True  # whether what it says it has would survive a power cut
    uvloop: bool = False
    divided_by: int = 1  # a peer that would take minutes gets a part of the messages
    must_run: bool = False


class Contestant:
    """One end of a peer's queue. Sender and worker are two processes, each with a contestant of its own."""

    settings: ClassVar[Settings]

    async def open(self, address: str, *, fresh: bool) -> None:
        """Connect. The sender comes first and finds the store `fresh`: it makes the tables, if there are any."""
        raise NotImplementedError

    async def send(self, job: Job) -> None:
        """Return once the peer says that it has the job."""
        raise NotImplementedError

    async def send_batch(self, jobs: Sequence[Job]) -> None:
        """Only where `settings.batches`."""
        raise NotImplementedError

    async def filled(self) -> None:
        """Everything to be drained is in. What a server does by itself within a minute is done now, and not timed."""

    async def work(self, arrived: Arrived) -> None:
        """Handle jobs from now on, one worker. May return while threads of its own go on."""
        raise NotImplementedError


def job(number: int, *, sent_at: float = 0.0) -> Job:
    """About as large as what Penstock is given."""
    return {
        "number": number,
        "url": f"https://shop.example/flats/{number:08}",
        "title": "Two rooms, quiet, no lift",
        "sent_at": sent_at,
    }
