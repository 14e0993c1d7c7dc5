"""The two ways to decide a pace: the pilot, which finds a service's limit by itself, and the zones of the articles."""

from __future__ import annotations

from typing import Any

from penstock.control.controller import Definition
from penstock.control.pace import Pace
from penstock.control.piloting import PilotPace
from penstock.control.zoning import ZonesPace
from penstock.model.errors import BadApp

MODES = ("pilot", "zones")


def pace_of(definition: Definition, saved: dict[str, Any], *, now: float) -> Pace:
    """The pace as it was saved, within the rails that hold now."""
    if definition.mode == "pilot":
        return PilotPace(saved, rate=definition.rate, parallel=definition.parallel)
    if definition.mode == "zones":
        return ZonesPace(saved, parallel=definition.parallel, now=now)
    raise BadApp(f"There is no mode {definition.mode!r}; there are: {', '.join(MODES)}.")
