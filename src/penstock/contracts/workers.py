"""Worker processes as the store knows them: who is there, what they hold, who is gone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from penstock.contracts.ledger import Death
from penstock.model.queue import QueueSettings


@dataclass(frozen=True, slots=True)
class Returned:
    """What became of the rows that a worker held."""

    released: int = 0
    suspected: int = 0
    charged: int = 0
    dead: int = 0
    deaths: tuple[Death, ...] = field(default=(), compare=False)  # the dead ones, one by one


@dataclass(frozen=True, slots=True)
class WorkerRow:
    id: int
    host: str
    pid: int
    started_at: int
    runs_handlers: bool = True  # a supervisor, a server and a producer do not


class HandlerRow(NamedTuple):
    """A type that a worker can run. `handler` is empty unless several handlers share the type."""

    queue: str
    type: str
    handler: str


class Workers(Protocol):
    """Lives in the writer's thread. Each method is one transaction."""

    @property
    def me(self) -> int:
        """The number this process writes under."""

    def register_queues(self, queues: Sequence[QueueSettings]) -> list[str]: ...
    def register_handlers(self, handlers: Sequence[HandlerRow]) -> None:
        """Notes what this process can run."""

    def knows(self, handler: HandlerRow) -> bool:
        """Whether another worker that is there can run this."""

    def return_rows(
        self, worker: int, *, started: Collection[int] | None, charged: Collection[int] = (), now: int
    ) -> Returned:
        """Release what a dead worker held. `started` are the rows that may have begun (None: all of them);
        `charged` are those to blame for their own overrun."""

    def retire(self, worker: int, *, now: int) -> None:
        """Removes a worker that holds nothing, keeping what it counted."""

    def behind(self, *, now: int, most: int | None = None) -> int:
        """Notes the time. By how much it lies behind the latest that was noted, 0 if it does not. If that is more than
        `most`, the clock was wrong then: what waits is due that much sooner, and what was noted is forgotten."""

    def listed(self) -> list[WorkerRow]: ...
