"""Saves a batch of points in one transaction, with what they add up to by hour and by day; removes what is old."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from penstock.contracts.history import HistoryFile, Run
from penstock.metrics.point import Noted, Sort, Sorts, Unfit, numbers
from penstock.model.times import day_of, from_text, text_of_micros, to_micros

SECOND = 1_000_000
DAY = 86_400 * SECOND
RAW_DAYS = 90
RAW_BYTES_MAX = 1_000_000_000  # of points, as they were written; beyond that the oldest days go before their time
KEPT_DAYS = {"hour": 190, "day": 731}  # what points add up to
ROLLED_SORTS_MAX = (
    500  # of a dataset and a day that are added up; who writes ids among the words has them in points alone
)
DIGITS = {"hour": 13, "day": 10}  # of a time's text, which tell its span
SPAN_BEGINS = "0000-00-00 00:00:00"
SHORT = 4  # doubles of a point that is saved with half the work


class DatasetTally(msgspec.Struct):
    """What became of what was written to a dataset, and how often it was asked."""

    written: int = 0
    dropped: int = 0
    refused: int = 0
    asked: int = 0
    bytes: int = 0

    def add(self, other: DatasetTally) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Ready(NamedTuple):
    """A batch that was checked: each point with its sort, its time as text and its numbers."""

    points: list[tuple[Sort, str, tuple[float | None, ...]]]
    refused: list[str]  # the datasets of points that were none
    reason: str | None  # why the first of them was none


class Rolling:
    """Which sorts are added up today: the first few hundred of each dataset, so that there is an end to them."""

    def __init__(self) -> None:
        self._day = ""
        self._taken: dict[str, set[int]] = {}

    def takes(self, sort: Sort, day: str) -> bool:
        if day != self._day:
            self._day, self._taken = day, {}
        taken = self._taken.setdefault(sort.dataset, set())
        if sort.digest not in taken and len(taken) < ROLLED_SORTS_MAX:
            taken.add(sort.digest)
        return sort.digest in taken


class Used(NamedTuple):
    """What all processes have written and asked on one day."""

    day: str
    written: int
    asked: int


def ready(batch: Iterable[Noted], sorts: Sorts) -> Ready:
    points: list[tuple[Sort, str, tuple[float | None, ...]]] = []
    refused: list[str] = []
    reason: str | None = None
    times: dict[int, str] = {}
    for point in batch:
        second = point.at // SECOND
        at = times.get(second)
        if at is None:
            at = times[second] = text_of_micros(point.at)
        try:
            points.append((sorts.of(point), at, numbers(point.doubles)))
        except Unfit as unfit:
            refused.append(point.dataset)
            reason = reason or str(unfit)
    return Ready(points, refused, reason)


def save(
    run: Run, checked: Ready, tallies: dict[str, DatasetTally], rolling: Rolling, *, now: int, writes_max: int | None
) -> tuple[Used, dict[str, DatasetTally]]:
    """Saves what the day's quota still has room for; what the day has used then, and what became of this batch."""
    day = day_of(now)
    ((written, asked),) = run("used", {"day": day})
    room = len(checked.points) if writes_max is None else max(0, writes_max - written)
    points, dropped = checked.points[:room], checked.points[room:]
    counted: dict[str, DatasetTally] = {}
    for dataset, tally in tallies.items():
        counted.setdefault(dataset, DatasetTally()).add(tally)
    size = _note(run, points, rolling, now) // len(points) if points else 0
    for dataset, number in Counter([sort.dataset for sort, _, _ in points]).items():
        counted.setdefault(dataset, DatasetTally()).add(DatasetTally(written=number, bytes=number * size))
    for dataset, number in Counter([sort.dataset for sort, _, _ in dropped]).items():
        counted.setdefault(dataset, DatasetTally()).dropped += number
    for dataset, number in Counter(checked.refused).items():
        counted.setdefault(dataset, DatasetTally()).refused += number
    if counted:
        rows = {name: msgspec.structs.astuple(each) for name, each in sorted(counted.items())}
        run("tally", {"day": day, "batch": msgspec.json.encode(rows).decode()})
    asked += sum(each.asked for each in counted.values())
    return Used(day, written + len(points), asked), counted


def _note(run: Run, points: Sequence[tuple[Sort, str, tuple[float | None, ...]]], rolling: Rolling, now: int) -> int:
    """Saves points, and tells about how many bytes they take."""
    day, until = day_of(now), day_of(now + (RAW_DAYS + 1) * DAY)
    until_rolled = day_of(now + (max(KEPT_DAYS.values()) + 1) * DAY)
    sorts = {sort: rolling.takes(sort, day) for sort in dict.fromkeys(sort for sort, _, _ in points)}
    kept = {
        sort: [sort.digest, until_rolled if taken else until, sort.dataset, sort.under, *sort.blobs]
        for sort, taken in sorts.items()
    }
    # In the order of their digests: two processes that note the same sorts never wait for each other.
    run("note_sorts", {"batch": _batch(row for _, row in sorted(kept.items()))})
    statement = "note_points" if any(len(doubles) > SHORT for _, _, doubles in points) else "note_short_points"
    batch = _batch([sort.dataset, at, sort.digest, *doubles] for sort, at, doubles in points)
    run(statement, {"batch": batch})
    rolled: list[list[Any]] = sorted(_rolled([each for each in points if sorts[each[0]]]), key=lambda row: row[:5])
    if rolled:
        run("roll_up", {"batch": _batch(rolled)})
    alone = [row for sort, row in kept.items() if not sorts[sort]]
    return len(batch) + (len(_batch(alone)) if alone else 0)


def _rolled(points: Sequence[tuple[Sort, str, tuple[float | None, ...]]]) -> Iterator[list[Any]]:
    groups: dict[tuple[str, Sort], list[tuple[float | None, ...]]] = {}
    for sort, at, doubles in points:
        groups.setdefault((at[: DIGITS["hour"]], sort), []).append(doubles)
    days: dict[tuple[str, Sort, int], list[Any]] = {}
    for (hour, sort), rows in groups.items():
        for place, (count, total, least, most) in enumerate(_added_up(rows)):
            if count:
                yield [*_key("hour", hour, sort), place, count, total, least, most]
                day = days.setdefault((hour[: DIGITS["day"]], sort, place), [0, None, None, None])
                day[0] += count
                if place:
                    day[1:] = [
                        total + (day[1] or 0.0),
                        least if day[2] is None else min(least, day[2]),
                        most if day[3] is None else max(most, day[3]),
                    ]
    for (day_text, sort, place), numbers_of_day in days.items():
        yield [*_key("day", day_text, sort), place, *numbers_of_day]


def _key(span: str, at: str, sort: Sort) -> list[Any]:
    return [span, at + SPAN_BEGINS[len(at) :], sort.dataset, sort.digest]


def _added_up(rows: Sequence[tuple[float | None, ...]]) -> Iterator[tuple[Any, ...]]:
    """How many points there are, then count, sum, least and most of each of their numbers."""
    yield len(rows), None, None, None
    for column in zip_longest(*rows):
        held: Sequence[Any] = [number for number in column if number is not None] if None in column else column
        yield (len(held), sum(held), min(held), max(held)) if held else (0, None, None, None)


def _batch(rows: Iterable[Sequence[Any]]) -> str:
    return msgspec.json.encode({str(number): row for number, row in enumerate(rows)}).decode()


# -- removing -----------------------------------------------------------------------------------------------


def prune(file: HistoryFile, *, now: int, limit: int) -> bool:
    """Removes at most `limit` of each kind that are too old; whether there may be more."""

    def remove(run: Run) -> bool:
        oldest = max(now - RAW_DAYS * DAY, _crowded_before(run))
        removed = [len(run("prune_points", {"before": text_of_micros(oldest), "limit": limit}))]
        for span, days in KEPT_DAYS.items():
            bound = {"span": span, "before": text_of_micros(now - days * DAY), "limit": limit}
            removed.append(len(run("prune_rolled", bound)))
        unneeded = day_of(oldest + (RAW_DAYS + 1) * DAY)
        removed.append(len(run("prune_sorts", {"before": unneeded, "limit": limit})))
        run("prune_tallies", {"before": day_of(now - RAW_DAYS * DAY)})
        return max(removed) == limit

    return file.transact(remove)


def _crowded_before(run: Run) -> int:
    """When the first day begins whose points fit with those of all days after it; the last day's always do."""
    size, fits = 0, ""
    for day, written in run("sizes", {}):
        size += written
        if fits and size > RAW_BYTES_MAX:
            return to_micros(from_text(f"{fits} 00:00:00"))
        fits = day
    return 0
