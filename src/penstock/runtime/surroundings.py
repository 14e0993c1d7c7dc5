"""The surroundings of an engine: time, chance, threads and bells, all of which a test may replace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import urandom
from random import Random

from penstock.contracts.clock import Clock
from penstock.contracts.faults import Faults, NoFaults
from penstock.contracts.presence import Bell
from penstock.contracts.store import Store
from penstock.runtime.clock import HostClock
from penstock.runtime.lanes import Lane, ThreadLane

TICK_SECONDS = 1.0  # how long a lost wake-up or a dead neighbour may go unnoticed


def _random() -> Random:
    """Chance that no other process shares. Asking the system for every id would cost a system call each."""
    return Random(urandom(32))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the real world gives by default."""

    clock: Clock = field(default_factory=HostClock)
    random: Random = field(default_factory=_random)
    faults: Faults = field(default_factory=NoFaults)
    lane: Callable[[str], Lane] = ThreadLane
    bell: Callable[[Store, int], Bell] = lambda store, worker: store.bell(worker)
    tick_seconds: float | None = TICK_SECONDS
    in_place: bool = False  # storage runs inside the event loop: virtual time
