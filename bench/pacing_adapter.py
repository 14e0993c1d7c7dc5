"""The pilot as the plug-in of a pacing simulator: outcomes go in, its decision comes out, nothing is computed here."""

from __future__ import annotations

import importlib.util
import site
from pathlib import Path
from typing import Any

if importlib.util.find_spec("penstock") is None:  # run by a Python that knows nothing of this folder
    for packages in (Path(__file__).resolve().parent.parent / ".venv").glob("lib/python3*/site-packages"):
        site.addsitedir(str(packages))

from penstock.control.outcome import Outcome
from penstock.control.pace import AdaptivePace

OUTCOMES = {200: Outcome.OK, 404: Outcome.GONE, -1: Outcome.UNPARSABLE, 429: Outcome.THROTTLED, 403: Outcome.THROTTLED}
REFUSALS = (429, 403, 503)  # what the simulator takes for one
RATE, PARALLEL = (0.001, 1_000.0), 32  # the rails of a controller that names none; sockets of the simulated machine
AT_ONCE = 1e-9  # the simulator takes a spacing of zero for "wait for an answer first"
SOON = 0.05  # the simulator cannot be woken by an answer


class Pilot:
    """`decide` and `observe` are the simulator's; everything else is the object that a controller runs."""

    name = "pilot"
    execution = "pool"
    retry_position = "tail"
    max_attempts = 5  # of a controller's item

    def __init__(self) -> None:
        self.pace = AdaptivePace({}, rate=RATE, parallel=PARALLEL)
        self.tickets: dict[float, int] = {}
        self.next_slot = False

    def decide(self, now: float) -> tuple[float, ...]:
        decision = self.pace.next(now)
        if decision.start:
            self.tickets[now] = self.pace.started(now)
            return 1, decision.parallel, 0.0, AT_ONCE
        if decision.again_at is not None:
            return 0, decision.parallel, decision.again_at - now
        if not decision.next_slot:
            return 0, decision.parallel, SOON
        # One more as soon as one of those under way is answered, unless that is a refusal.
        self.next_slot = True
        return 1, len(self.tickets), 0.0, AT_ONCE, 1

    def observe(self, now: float, outcomes: list[Any]) -> None:
        for each in outcomes:
            at = each.start + each.latency
            self.pace.finished(
                at,
                self.tickets.pop(each.start),
                OUTCOMES.get(each.status, Outcome.UNAVAILABLE),
                latency=each.latency,
                retry_after=each.retry_after,
                item=str(each.item),
            )
            if self.next_slot:
                self.next_slot = False
                if each.status not in REFUSALS:
                    self.tickets[at] = self.pace.started(at)
