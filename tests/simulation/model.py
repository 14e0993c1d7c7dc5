"""What the simulator itself knows: each message, each run of a handler, each worker, all kept outside the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from penstock.testing.process import Process
from tests.simulation.plan import QueuePlan

WAITING, LEASED, ACKED, DEAD = "waiting", "leased", "acked", "dead"


@dataclass(slots=True, eq=False)
class Row:
    """A message as the committed changes show it."""

    id: bytes
    key: str
    queue: QueuePlan
    seq: int
    due: int
    ready_at: float  # on the steady clock
    state: str = WAITING
    token: int = 0
    worker: int | None = None
    attempts: int = 0
    crashes: int = 0
    claimed_at: float = 0.0
    charged: int = 0  # failures of its handler that were saved


@dataclass(slots=True, eq=False)
class Crew:
    """One worker process, from its start to its end."""

    name: str
    process: Process
    queues: dict[str, QueuePlan]
    number: int = 0
    serving: bool = False  # it claims
    stopping: bool = False
    running: list[Run] = field(default_factory=list)  # handlers that have begun and not ended
    on_processor: Run | None = None
    suspects: set[Run] = field(default_factory=set)
    held: dict[str, int] = field(default_factory=dict)  # rows it has claimed, by queue
    suspects_held: int = 0
    full_at: dict[str, float] = field(default_factory=dict)  # when it last had no slot for a queue
    started_at: float = 0.0
    paused_at: float = float("-inf")
    resumed_at: float = float("-inf")
    died_at: float | None = None
    left: bool = False


@dataclass(slots=True, eq=False)
class Run:
    """One delivery whose handler began, and what it may save if it still holds its row."""

    row: Row
    token: int
    crew: Crew
    began: float
    suspect: bool
    ended: float | None = None
    outcome: str = ""
    seconds: float = 0.0
    effects: Counter[str] = field(default_factory=Counter)
    children: list[bytes] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Order:
    """What a producer tried to send in one unit."""

    ids: list[bytes]
    keys: list[str]
    fate: str = "unknown"  # or confirmed, or refused
    saved: int = 0


class Trace:
    """What happened, in order. The same seed gives the same lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def note(self, at: float, text: str) -> None:
        self.lines.append(f"{at:12.6f} {text}")
