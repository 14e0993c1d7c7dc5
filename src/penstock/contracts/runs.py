"""Runs of workflows as the store knows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from penstock.model.message import NewMessage
from penstock.model.run import StepRecord


class NewRun(NamedTuple):
    """A run begins with its message; if there is one of this id, ended or not, nothing happens."""

    key: bytes
    workflow: str
    id: str
    input: bytes
    parent: bytes | None
    parent_step: str | None
    message: NewMessage


class EndRun(NamedTuple):
    """The run has ended; its parent, if it has one, is notified."""

    key: bytes
    state: str
    result: bytes | None
    error: str | None
    kept_seconds: float
    is_child: bool = True  # or it may be
    generation: int = -1  # which it has to be of, where no fence says so: an operator may have restarted it meanwhile
    traceback: str | None = None


class Suspend(NamedTuple):
    """The run waits. It continues at once if a signal of one of these names is there already, or if it was stopped for a
    pause that is over."""

    key: bytes
    queue: str
    signals: tuple[str, ...]
    pausing: bool


class ParkRun(NamedTuple):
    """The run waits for an operator."""

    key: bytes
    reason: str
    error: str


class Progress(NamedTuple):
    """A run that had failed, or died with its worker, has come further since: nothing of that counts any more."""

    seq: int


class NewSignal(NamedTuple):
    key: bytes
    name: str
    payload: bytes


class TakeSignal(NamedTuple):
    """A run has got its signal."""

    seq: int


class WakeMessage(NamedTuple):
    """A message was put off for what has come now: it is due. One that was never claimed keeps the delay it was sent with."""

    id: bytes
    queue: str


RunChange = NewRun | StepRecord | EndRun | Suspend | ParkRun | Progress | NewSignal | TakeSignal | WakeMessage


class Signal(NamedTuple):
    seq: int
    name: str
    payload: bytes


class RunHistory(NamedTuple):
    """What a run continues from."""

    state: str
    steps: list[StepRecord]
    signals: list[Signal]


class RunRow(NamedTuple):
    """A run as it stands. `due` is when it continues, if it waits."""

    key: bytes
    workflow: str
    id: str
    state: str
    reason: str | None
    input: bytes
    result: bytes | None
    error: str | None
    generation: int
    priority: int
    correlation_id: bytes
    parent: bytes | None
    created_at: int
    ended_at: int | None
    due: int | None


class Runs(Protocol):
    """Lives in the writer's thread. Each change is one transaction."""

    def histories(self, keys: Sequence[bytes]) -> list[RunHistory | None]: ...
    def find(self, key: bytes, *, now: int) -> RunRow | None: ...
    def steps(self, key: bytes) -> list[StepRecord]: ...
    def listed(self, workflow: str | None, state: str | None, *, now: int, limit: int) -> list[RunRow]: ...
    def pause(self, key: bytes, *, now: int) -> set[str]:
        """As with all that follow, the queues that have changed; none if there is no such run, or it cannot be."""

    def resume(self, key: bytes, *, now: int) -> set[str]: ...
    def terminate(self, key: bytes, *, now: int, kept_seconds: float) -> set[str]:
        """Its children end with it."""

    def restart(
        self, key: bytes, position: int, generation: int, message: NewMessage, *, kept_seconds: float
    ) -> set[str]:
        """From the step of that position on it is done anew, with a message of its own, unless it was restarted
        since it was of this generation."""
