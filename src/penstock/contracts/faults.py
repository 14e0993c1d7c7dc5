"""Named crash points: the places where a test may kill, stop or fail a process."""

from __future__ import annotations

from typing import Protocol

from penstock.model.errors import BadConfig

CRASH_POINTS = (
    "claim.delivered",  # rows are claimed and this worker knows it; no handler has begun
    "handler.before",  # a handler is about to begin
    "handler.after",  # a handler has returned; its unit is not sealed yet
    "step.before",  # a step of a workflow is about to begin
    "step.after",  # it has returned; nothing of it is saved
    "step.saved",  # its result is saved and its run knows it
    "unit.sealed",  # the unit waits for its group
    "commit.begun",  # the group's transaction is open
    "commit.settled",  # fences held, rows settled
    "commit.written",  # users' statements ran
    "commit.sent",  # messages inserted
    "commit.fired",  # timers became messages
    "commit.claimed",  # due rows claimed
    "commit.before",  # about to commit
    "commit.after",  # committed; no caller knows it yet
    "commit.known",  # the event loop has learnt of it
    "send.after_commit",  # what came from outside is saved; its sender does not know
    "pull.after_commit",  # rows are leased to an external client that does not know
    "return.before",  # a dead worker's rows are about to be returned
    "return.after",
    "drain.begun",  # a stopping worker no longer claims
)


class Faults(Protocol):
    """Asked at each crash point. In production it does nothing."""

    def at(self, point: str) -> None: ...


class NoFaults:
    def at(self, point: str) -> None:
        pass


def known_point(name: str) -> str:
    if name not in CRASH_POINTS:
        raise BadConfig(f"There is no crash point {name!r}. There are: {', '.join(CRASH_POINTS)}.", value=name)
    return name
