"""The unit of one event of an object, which its alarm is set in."""

from __future__ import annotations

from penstock.model.errors import PenstockError
from penstock.runtime.unit import AwaitedUnit, current_unit


class EventUnit(AwaitedUnit):
    """Commits with the state of its object."""

    __slots__ = ()


def event_unit() -> EventUnit:
    """Return the unit of the current event, or raise outside of one."""
    unit = current_unit.get()
    if not isinstance(unit, EventUnit) or unit.closed:
        raise PenstockError("An alarm can only be set inside an event of its object.")
    return unit
