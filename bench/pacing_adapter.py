"""The pilot as the plug-in of a pacing simulator: outcomes go in, its decision comes out, nothing is computed here."""

from __future__ import annotations

import importlib.util
import site
from pathlib import Path
from typing import Any

if importlib.util.find_spec("penstock") is None:  # run by a Python that knows nothing of this folder
    for packages in (Path(__file__).resolve().parent.parent / ".venv").glob("lib/python3*/site-packages"):
        site.addsitedir(str(packages))

from penstock.control.pilot import Outcome
from penstock.control.pilot import Pilot as RealPilot

OUTCOMES = {
    200: Outcome.OK,
    404: Outcome.GONE,
    -1: Outcome.UNPARSABLE,
    429: Outcome.THROTTLED,
    403: Outcome.THROTTLED,
}
AT_ONCE = 1e-9  # the simulator takes a spacing of zero for "wait for an answer first"


class Pilot:
    name = "pilot"
    execution = "pool"
    retry_position = "tail"
    max_attempts = 5

    def __init__(self) -> None:
        self.pilot = RealPilot()
        self.tickets: dict[float, int] = {}
        self.handing_over = False

    def decide(self, now: float) -> tuple[float, ...]:
        decision = self.pilot.next(now)
        if decision.start:
            self.tickets[now] = self.pilot.started(now)
            return 1, decision.parallel, 0.0, AT_ONCE
        if decision.again_at is not None:
            return 0, decision.parallel, decision.again_at - now
        if self.pilot.state.door.row >= 2:
            return 0, decision.parallel, 0.05
        self.handing_over = True
        return 1, len(self.tickets), 0.0, AT_ONCE, 1

    def observe(self, now: float, outcomes: list[Any]) -> None:
        for o in outcomes:
            at = o.start + o.latency
            outcome = OUTCOMES.get(o.status, Outcome.UNAVAILABLE)
            self.pilot.finished(
                at, self.tickets.pop(o.start), outcome, latency=o.latency, retry_after=o.retry_after, item=str(o.item)
            )
            if self.handing_over:
                self.handing_over = False
                if o.status not in (429, 403, 503):
                    self.tickets[at] = self.pilot.started(at)
