"""What tests of a pipeline need: virtual time, in which days pass in milliseconds and every run repeats."""

from __future__ import annotations

from penstock.contracts.faults import CRASH_POINTS
from penstock.model.run import Nondeterminism
from penstock.queues.letters import DeadLetter
from penstock.testing.attempts import Attempt, attempt
from penstock.testing.counts import Counts, NotConserved
from penstock.testing.duplicates import NotIdempotent, deliver_twice
from penstock.testing.harness import NotDrained, TestApp, WorkerFailed
from penstock.testing.loop import VirtualLoop, VirtualTime, run, virtual
from penstock.testing.replay import replay
from penstock.testing.services import TestServices
from penstock.testing.simulating import History, InvariantBroken, Report, history_of, simulate
from penstock.testing.simulation import Simulation

__all__ = [
    "CRASH_POINTS",
    "Attempt",
    "Counts",
    "DeadLetter",
    "History",
    "InvariantBroken",
    "Nondeterminism",
    "NotConserved",
    "NotDrained",
    "NotIdempotent",
    "Report",
    "Simulation",
    "TestApp",
    "TestServices",
    "VirtualLoop",
    "VirtualTime",
    "WorkerFailed",
    "attempt",
    "deliver_twice",
    "history_of",
    "replay",
    "run",
    "simulate",
    "virtual",
]
