"""When a cron task runs: its fires in any time zone, and what becomes of those that passed without a worker."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Literal, NoReturn, get_args

from cronsim import CronSim, CronSimError

from penstock.model.errors import BadConfig, BadParameter
from penstock.model.times import MICROS, from_micros, to_micros
from penstock.model.zone import Zone

CatchUp = Literal["once", "skip", "all"]
Overlap = Literal["skip", "queue", "allow"]

ON_TIME_SECONDS = 60  # a restart or a busy moment is no outage: a fire taken up within cron's finest step is on time
CATCH_UP_SPACING_SECONDS = 1  # between two fires that are made up for, so that a return is no stampede
CATCH_UP_MAX = 1_000  # the most that one return may make up for
MISSED_COUNTED_MAX = 10_000  # a count stops here, or three years without a machine would be counted minute by minute
CLOCK_AHEAD_MAX_SECONDS = 25 * 3_600  # a last fire further ahead than any change of a clock came from a wrong clock
WAITING_MAX = 100  # fires of one schedule that may wait for their turn
EASY_PACE_SECONDS = 300  # a task that runs more often has to say why and to look before it works

_TEXT_MAX = 300  # every value of every field written out stays below
_ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# How errors call each field, how many values it has, and what it takes.
_FIELDS = {
    "minute": (60, "0 to 59"),
    "hour": (24, "0 to 23"),
    "day of month": (31, "1 to 31, no later day than its months have, L (the last day) or LW (the last weekday)"),
    "month": (12, "1 to 12, or JAN to DEC"),
    "day of week": (7, "0 to 7, or SUN to SAT, with #2 for the second of a month, 5L for its last Friday"),
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression and its rules. Times in and out are microseconds since 1970.

    Where hours and minutes are named, as in `30 2 * * *`, it fires once for each on every local day: a time that a
    clock leaps over is made up for right after the leap (before it, if that is already the next day), and a time that
    comes twice counts the first time. Where one of them starts with `*`, as in `*/15 * * * *`, it follows real time.
    """

    expression: str
    _: KW_ONLY
    zone: str = "UTC"
    jitter_seconds: int = 0
    catch_up: CatchUp = "once"
    overlap: Overlap = "skip"
    catch_up_max: int = 100  # how many of the latest missed fires `all` makes up for
    fields: CronSim = field(init=False, repr=False, compare=False)
    place: Zone = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", _parse(self.expression))
        object.__setattr__(self, "place", Zone(self.zone))
        _require("catch_up", self.catch_up, self.catch_up in get_args(CatchUp), "Write once, skip or all")
        _require("overlap", self.overlap, self.overlap in get_args(Overlap), "Write skip, queue or allow")
        most = CATCH_UP_MAX
        _require("catch_up_max", self.catch_up_max, 1 <= self.catch_up_max <= most, f"Write a number from 1 to {most}")
        # With more, a fire could come before the one it follows.
        most = self.shortest_gap_minutes * 60 - 1
        fits = 0 <= self.jitter_seconds <= most
        _require("jitter_seconds", self.jitter_seconds, fits, f"`{self.expression}` leaves room for 0 to {most}")

    def next_after(self, micros: int) -> int:
        """The first fire later than this moment."""
        return self._next_fixed(micros) if self._names_times else self._next_real(micros)

    def fires_between(self, after: int, until: int) -> Iterator[int]:
        """The fires later than `after` and not later than `until`, so that windows side by side share none."""
        while (after := self.next_after(after)) <= until:
            yield after

    def latest_between(self, after: int, until: int) -> int | None:
        """The last of those fires, found by halving and not by walking."""
        low, high = after, until
        if self.next_after(low) > until:
            return None
        while high - low > MICROS:  # no two fires are closer
            middle = (low + high) // 2
            if self.next_after(middle) <= until:
                low = middle
            else:
                high = middle
        return self.next_after(low)

    def jitter_micros(self, name: str, due: int) -> int:
        """How much later this fire starts: drawn from its name and time, so every process draws the same."""
        drawn = int.from_bytes(blake2b(f"{name}\n{due}".encode(), digest_size=8).digest())
        return drawn * (self.jitter_seconds * MICROS + 1) >> 64

    @property
    def _names_times(self) -> bool:
        """Whether hours and minutes are named, as in a daily job."""
        return not any(part.startswith("*") for part in self.fields.parts[1:3])

    @property
    def shortest_gap_minutes(self) -> int:
        """Between two fires on days that follow each other; a clock that is changed does not count."""
        times = sorted(hour * 60 + minute for hour in self.fields.hours for minute in self.fields.minutes)
        return min(later - earlier for earlier, later in pairwise((*times, times[0] + 24 * 60)))

    def _next_wall(self, after: datetime) -> datetime:
        """The first minute later than `after` that the fields name. Both are what a wall clock shows, without a zone."""
        fires = copy.copy(self.fields)
        fires.dt = after.replace(microsecond=0)
        try:
            return next(fires)
        except (StopIteration, OverflowError) as why:  # not within 50 years, or beyond the calendar's end
            raise BadParameter(
                f"`{self.expression}` has no due time after {after.isoformat(' ')}.", value=after
            ) from why

    def _next_fixed(self, micros: int) -> int:
        wall = self.place.wall(micros)
        while True:
            wall = self._next_wall(wall)
            fire = self.place.moment_of(wall)
            # In the second pass of an hour that comes twice, the wall times ahead have fired in the first.
            if fire is not None and fire > micros:
                return fire

    def _next_real(self, micros: int) -> int:
        while True:
            offset = self.place.offset(micros + 1)
            found = to_micros(self._next_wall(from_micros(micros + offset)).replace(tzinfo=UTC)) - offset
            change = self.place.change_between(micros + 1, found)
            if change is None:
                return found
            micros = change - 1


@dataclass(frozen=True, slots=True)
class Fire:
    """One run to be made. `due` is the time on the schedule, which with the schedule's name is the tick's identity."""

    due: int
    start: int
    late: bool = False


@dataclass(frozen=True, slots=True)
class FiringDecision:
    """What to run now, how many fires passed without a run, and when to look again."""

    fires: tuple[Fire, ...]
    missed: int
    next_due: int
    next_start: int


def decide(schedule: Schedule, name: str, *, last: int, now: int) -> FiringDecision:
    """Which fires are due. `last` is the due time of the latest fire dealt with, or when the schedule was set up."""
    if last - now > CLOCK_AHEAD_MAX_SECONDS * MICROS:
        last = now  # or a clock that once showed next year would keep the task waiting until then
    latest = schedule.latest_between(last, now)
    next_due = schedule.next_after(max(last, now))  # after a clock was set back, nothing fires a second time
    if latest is not None and latest + schedule.jitter_micros(name, latest) > now:
        next_due = latest
        latest = schedule.latest_between(last, latest - 1)
    fires = () if latest is None else _fires(schedule, name, last, latest, now)
    missed = 0 if latest is None else _count(schedule, last, latest) - len(fires)
    return FiringDecision(fires, max(0, missed), next_due, next_due + schedule.jitter_micros(name, next_due))


def _fires(schedule: Schedule, name: str, last: int, latest: int, now: int) -> tuple[Fire, ...]:
    start = latest + schedule.jitter_micros(name, latest)
    on_time = now - start <= ON_TIME_SECONDS * MICROS
    if on_time and schedule.catch_up != "all":
        return (Fire(latest, start),)
    if schedule.catch_up == "skip":
        return ()
    dues = [latest]
    while schedule.catch_up == "all" and len(dues) < schedule.catch_up_max:
        earlier = schedule.latest_between(last, dues[-1] - 1)
        if earlier is None:
            break
        dues.append(earlier)
    # All who return together would start together, so the jitter is drawn again from now on.
    start = start if on_time and len(dues) == 1 else now + schedule.jitter_micros(name, latest)
    return tuple(
        Fire(due, start + turn * CATCH_UP_SPACING_SECONDS * MICROS, late=due != latest or not on_time)
        for turn, due in enumerate(reversed(dues))
    )


def _count(schedule: Schedule, after: int, until: int) -> int:
    return sum(1 for _ in islice(schedule.fires_between(after, until), MISSED_COUNTED_MAX))


def meet(overlap: Overlap, *, running: int, waiting: int) -> Literal["run", "wait", "skip"]:
    """What a fire does that finds earlier ones of its schedule still running or waiting."""
    if overlap == "allow" or running + waiting == 0:
        return "run"
    return "wait" if overlap == "queue" and waiting < WAITING_MAX else "skip"


def refuse_frequent(schedule: Schedule) -> str | None:
    """Return why a task without a condition may not run on this schedule, or None if it may."""
    if schedule.shortest_gap_minutes * 60 >= EASY_PACE_SECONDS:
        return None
    return (
        f"`{schedule.expression}` runs more often than every 5 minutes. "
        "Give it `when=`, an async function that returns whether there is work, or run it less often."
    )


@lru_cache(maxsize=1_000)
def _parse(text: str) -> CronSim:
    written = text.strip()
    fields = _ALIASES.get(written.lower(), written).upper().split()
    _refuse_wrong_shape(text, fields)
    for (name, (most, _)), part in zip(_FIELDS.items(), fields, strict=True):
        if any(int(step) > most for step in re.findall(r"/([0-9]+)", part)):
            _refuse(name, part)  # a step starts anew in each round, so a longer one would fire once a round
    fields[4] = fields[4].replace("-SUN", "-7")  # SAT-SUN is a weekend
    try:
        return CronSim(" ".join(fields), datetime(1970, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        name = str(error).removeprefix("Bad ").replace("-", " ")
        _refuse(name, fields[list(_FIELDS).index(name)])


def _refuse_wrong_shape(text: str, fields: list[str]) -> None:
    if len(fields) == 5 and len(text) <= _TEXT_MAX:
        return
    way_out = "Write minute, hour, day of month, month and day of week, such as `*/5 * * * *`"
    if text.strip().startswith("@"):
        way_out = f"Of the names with @ there are {', '.join(_ALIASES)}"
    elif len(fields) == 6:
        way_out = f"Fields for seconds or years are not supported: the smallest step is a minute. {way_out}"
    elif len(fields) == 5:
        way_out = f"Its text is longer than {_TEXT_MAX} characters. Use ranges and steps"
    raise BadConfig(
        f"The schedule {text[:_TEXT_MAX]!r} has {len(fields)} fields. {way_out}.", field="expression", value=text
    )


def _refuse(field: str, value: str) -> NoReturn:
    count, values = _FIELDS[field]
    raise BadConfig(
        f"The {field} of a schedule is wrong in `{value}`. Write {values}, or `*`; join several with commas, 1-5 is a "
        f"range that runs upwards, */2 a step of at most {count}.",
        field=field,
        value=value,
    )


def _require(field: str, value: object, fits: bool, way_out: str) -> None:
    if not fits:
        raise BadConfig(f"The {field} of a schedule cannot be {value!r}. {way_out}.", field=field, value=value)
