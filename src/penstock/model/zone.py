"""A time zone: what its clocks show, and when they show it first, on the days when they are changed as well."""

from __future__ import annotations

import difflib
import zoneinfo
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from itertools import count

from penstock.model.errors import BadConfig
from penstock.model.times import MICROS, from_micros, to_micros

_MINUTE = 60 * MICROS
_DAY = 24 * 60 * _MINUTE


@dataclass(frozen=True, slots=True)
class Zone:
    """`Zone("Europe/Berlin")`. Moments are microseconds since 1970; wall times are datetimes without a zone."""

    name: str
    place: tzinfo = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", _place(self.name))

    def wall(self, micros: int) -> datetime:
        """Return what a clock shows at this moment."""
        return from_micros(micros).astimezone(self.place).replace(tzinfo=None, fold=0)

    def moment_of(self, wall: datetime) -> int | None:
        """Return when a clock shows this for the first time.

        For a time that clocks leap over, return the moment right after the leap; before it, if that is the next day
        already; None for a time of a day that never was."""
        local = wall.replace(tzinfo=self.place)
        moment = to_micros(local.astimezone(UTC))
        if self.wall(moment) == wall:
            return moment
        leap = self.change_between(to_micros(local.replace(fold=1).astimezone(UTC)), moment)
        assert leap is not None  # a wall time that does not exist lies inside a leap
        nearby = (leap, leap - _MINUTE)
        return next((moment for moment in nearby if self.wall(moment).date() == wall.date()), None)

    def offset(self, micros: int) -> int:
        """Return by how many microseconds clocks are ahead of UTC at this moment."""
        offset = from_micros(micros).astimezone(self.place).utcoffset()
        assert offset is not None
        return (offset.days * 86_400 + offset.seconds) * MICROS + offset.microseconds

    def change_between(self, low: int, high: int) -> int | None:
        """Return the first moment up to `high` when clocks are set to another offset than at `low`, or None."""
        before = self.offset(low)
        # A change and its undoing are weeks apart, so looking once a day finds each.
        for look in count(low + _DAY, _DAY):
            look = min(look, high)
            if self.offset(look) != before:
                break
            low = look
            if look == high:
                return None
        high = look
        while high - low > 1:
            middle = (low + high) // 2
            if self.offset(middle) == before:
                low = middle
            else:
                high = middle
        return high


@lru_cache(maxsize=1_000)
def _place(name: str) -> tzinfo:
    if name == "UTC":
        return UTC  # so that the usual case needs no time zone data
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError) as why:
        known = zoneinfo.available_timezones()
        if not known:
            way_out = "This machine has no time zone data. Install it: `pip install tzdata`, or `apt install tzdata`."
        elif near := difflib.get_close_matches(name, known, n=1, cutoff=0.8):
            way_out = f"Did you mean {near[0]}?"
        else:
            way_out = "Write it as Region/City, such as Europe/Berlin, or UTC."
        raise BadConfig(f"The zone of a schedule cannot be {name!r}. {way_out}", field="zone", value=name) from why
