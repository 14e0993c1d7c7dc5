"""What the simulator itself knows: each message, each run of a handler, each worker, all kept outside the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.simulation.plan import QueuePlan
from tests.simulation.stage import Worker

WAITING, LEASED, ACKED, DEAD = "waiting", "leased", "acked", "dead"
SPLIT, PURGED, EXPIRED = "split", "purged", "expired"
OUTSIDE = 0  # the worker of a row that somebody outside has pulled

Name = tuple[bytes, str]  # the id of a message and the handler its row is for, empty if it is for any
Effect = tuple[bytes, str, int, str]  # id, handler, token, kind


@dataclass(slots=True, eq=False)
class Row:
    """A message as the committed changes show it."""

    id: bytes
    handler: str
    key: str
    queue: QueuePlan
    seq: int
    due: int
    ready_at: float  # on the steady clock
    size: int  # of its body
    origin: bytes  # the id it had before it died and was sent back
    expires: int | None = None
    state: str = WAITING
    token: int = 0
    worker: int | None = None
    attempts: int = 0
    crashes: int = 0
    claimed_at: float = 0.0
    charged: int = 0  # failures of its handler that were saved
    bare: bool = False  # acknowledged by somebody who wrote nothing

    @property
    def name(self) -> Name:
        return self.id, self.handler


@dataclass(slots=True, eq=False)
class Crew(Worker):
    """One worker process, and what the law knows of it."""

    queues: dict[str, QueuePlan] = field(default_factory=dict)
    number: int = 0
    running: list[Run] = field(default_factory=list)  # handlers that have begun and not ended
    on_processor: Run | None = None
    suspects: set[Run] = field(default_factory=set)
    held: dict[str, int] = field(default_factory=dict)  # rows it has claimed, by queue
    suspects_held: int = 0
    full_at: dict[str, float] = field(default_factory=dict)  # when it last had no slot for a queue
    parallel: dict[str, dict[int, float]] = field(default_factory=dict)  # slots it may think it has, and until when
    purging: Counter[str] = field(default_factory=Counter)  # queues that somebody empties through it

    def slots_taken(self, queue: str) -> int:
        return len({id(run.beside) for run in self.running if run.row.queue.name == queue})


@dataclass(slots=True, eq=False)
class Work:
    """What one unit of work collects, and the runs that it settles: one, or what is left of a batch."""

    runs: list[Run] = field(default_factory=list)
    effects: Counter[Effect] = field(default_factory=Counter)
    children: list[bytes] = field(default_factory=list)
    keeps: bool = False  # its handler ended so that all of this is saved with the settlements
    bounded: bool = False  # it sends to a queue that may have no room for it
    lost: bool = False  # one of its rows was taken from its worker, so nothing of it can be saved


@dataclass(slots=True, eq=False)
class Run:
    """One delivery whose handler began, and what it may save if it still holds its row."""

    row: Row
    token: int
    crew: Crew
    began: float
    suspect: bool
    work: Work
    beside: list[Run]  # those that its handler was given with it, itself included
    answered: bool = False  # what it wants to become of its row is known
    ended: float | None = None
    outcome: str = ""
    word: str = ""  # what a batch handler said about it
    seconds: float | None = None  # until it wants to come back; None leaves that to the queue


@dataclass(slots=True, eq=False)
class Order:
    """What a producer tried to send in one unit."""

    name: bytes
    ids: list[bytes]
    keys: list[str]
    keyed: bool = False  # its id can come back
    duplicate: bool = False  # it was told that its message had been there
    fate: str = "unknown"  # or confirmed, or refused
    saved: int = 0


@dataclass(slots=True, eq=False)
class Pull:
    """A row that is leased to somebody outside, and what he has asked for."""

    row: Row
    token: int
    lapses_at: float
    asked: str = ""  # or ack, or retry
    seconds: float | None = None
    ended: str = ""
