"""What the simulator itself knows of runs: what was committed of each, who runs it, and what was asked for outside."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.simulation.runs.plan import WorkflowPlan
from tests.simulation.stage import Worker

ACTIVE, PAUSED, ERRORED, TERMINATED, COMPLETE = "active", "paused", "errored", "terminated", "complete"
ENDED = {ERRORED, TERMINATED, COMPLETE}


class Record(NamedTuple):
    """A row of the table of steps."""

    position: int
    name: str
    kind: str
    state: str
    attempts: int
    due: int | None
    result: bytes | None
    error: str | None


@dataclass(slots=True, eq=False)
class Slice:
    """One call of a workflow's function, from its begin to its end."""

    run: Tracked
    generation: int
    token: int
    crew: Worker
    began: float
    version: int  # of the code
    ended: bool = False
    saved_in_pause: set[str] = field(default_factory=set)  # steps whose commit told of a pause
    heard_of_pause: bool = False


@dataclass(slots=True, eq=False)
class Held:
    """The message of a run."""

    seq: int
    token: int
    worker: int | None
    due: int
    attempts: int = 0
    crew: Worker | None = None  # who has claimed it
    claimed_at: float = 0.0
    claimed_paused: bool = False  # the run was paused by then


@dataclass(slots=True, eq=False)
class Tracked:
    """A run as the committed changes show it."""

    key: bytes
    id: str
    plan: WorkflowPlan
    input: bytes
    parent: bytes | None
    parent_step: str | None
    state: str = ACTIVE
    generation: int = 0
    result: bytes | None = None
    error: str | None = None
    message: Held | None = None
    records: dict[int, Record] = field(default_factory=dict)
    signals: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    paused_since: float | None = None  # on the steady clock
    deaths: int = 0  # of workers that held it, since it last came further
    overruns: int = 0  # of its wall limit, since it last came further
    mourned: bool = False  # it has died with its workers, or of its wall limit
    asked: Counter[str] = field(default_factory=Counter)  # what operators have asked for, which may come to pass
    happened: Counter[str] = field(default_factory=Counter)  # what of that has come to pass
    heard: set[bytes] = field(default_factory=set)  # signals that it has got

    def by_name(self) -> dict[str, Record]:
        return {record.name: record for record in self.records.values()}


Row = dict[str, Any]
