"""Saves a batch of points in one transaction, with what they add up to by hour and by day; removes what is old."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from penstock.contracts.history import HistoryFile, Run
from penstock.metrics.point import Noted, Sort, Sorts, Unfit, numbers
from penstock.model.times import day_of, text_of_micros

SECOND = 1_000_000
DAY = 86_400 * SECOND
RAW_DAYS = 90
# How long what points add up to is kept: hours for two summers, days for five years.
KEPT_DAYS = {"hour": 500, "day": 1_830}
DIGITS = {"hour": 13, "day": 10}  # of a time's text, which tell its span
SPAN_BEGINS = "0000-00-00 00:00:00"
SHORT = 4  # doubles of a point that is saved with half the work
BYTES_MAX = 4_000_000_000  # of the whole history; beyond that the oldest points go before their time


class Tally(msgspec.Struct):
    """What became of what was written to a dataset, and how often it was asked."""

    written: int = 0
    dropped: int = 0
    refused: int = 0
    asked: int = 0

    def add(self, other: Tally) -> None:
        self.written += other.written
        self.dropped += other.dropped
        self.refused += other.refused
        self.asked += other.asked


class Ready(NamedTuple):
    """A batch that was checked: each point with its sort, its time as text and its numbers."""

    points: list[tuple[Sort, str, tuple[float | None, ...]]]
    refused: list[str]  # the datasets of points that were none
    reason: str | None  # why the first of them was none


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
    run: Run, checked: Ready, tallies: dict[str, Tally], *, now: int, writes_max: int | None
) -> tuple[Used, dict[str, Tally]]:
    """Saves what the day's quota still has room for; what the day has used then, and what became of this batch."""
    day = day_of(now)
    ((written, asked),) = run("used", {"day": day})
    room = len(checked.points) if writes_max is None else max(0, writes_max - written)
    points, dropped = checked.points[:room], checked.points[room:]
    counted: dict[str, Tally] = {}
    for dataset, tally in tallies.items():
        counted.setdefault(dataset, Tally()).add(tally)
    for sort, _, _ in points:
        counted.setdefault(sort.dataset, Tally()).written += 1
    for sort, _, _ in dropped:
        counted.setdefault(sort.dataset, Tally()).dropped += 1
    for dataset in checked.refused:
        counted.setdefault(dataset, Tally()).refused += 1
    if points:
        _note(run, points, day)
    if counted:
        rows = {name: [each.written, each.dropped, each.refused, each.asked] for name, each in sorted(counted.items())}
        run("tally", {"day": day, "batch": msgspec.json.encode(rows).decode()})
    asked += sum(each.asked for each in counted.values())
    return Used(day, written + len(points), asked), counted


def _note(run: Run, points: Sequence[tuple[Sort, str, tuple[float | None, ...]]], day: str) -> None:
    # In the order of their digests: two processes that note the same sorts never wait for each other.
    sorts = sorted({sort for sort, _, _ in points})
    run(
        "note_sorts",
        {"day": day, "batch": _batch([each.digest, each.dataset, each.under, *each.blobs] for each in sorts)},
    )
    statement = "note_points" if any(len(doubles) > SHORT for _, _, doubles in points) else "note_short_points"
    run(statement, {"batch": _batch([sort.dataset, at, sort.digest, *doubles] for sort, at, doubles in points)})
    rolled: list[list[Any]] = sorted(_rolled(points), key=lambda row: row[:5])
    run("roll_up", {"batch": _batch(rolled)})


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
    crowded = file.bytes() > BYTES_MAX

    def before(days: int) -> str:
        return text_of_micros(now if crowded else now - days * DAY)

    def remove(run: Run) -> bool:
        removed = [len(run("prune_points", {"before": before(RAW_DAYS), "limit": limit}))]
        for span, days in KEPT_DAYS.items():
            removed.append(len(run("prune_rolled", {"span": span, "before": before(days), "limit": limit})))
        # A day longer than what they belong to, since a sort says only on which day it was last seen.
        unseen = day_of(now - (max(KEPT_DAYS.values()) + 1) * DAY)
        removed.append(len(run("prune_sorts", {"before": unseen, "limit": limit})))
        run("prune_tallies", {"before": day_of(now - RAW_DAYS * DAY)})
        return max(removed) == limit

    return file.transact(remove)
